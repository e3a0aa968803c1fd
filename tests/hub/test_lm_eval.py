"""Test lm-evaluation-harness on an exported language model, in an environment without fairseq and this package.

The harness installs the newest transformers that it allows, so the code of exported models is tested with that, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from integration import lm
from support_exchange import exported

import fairseq_posenc

HARNESS = ["lm_eval[hf]==0.4.13", f"torch=={torch.__version__.partition('+')[0]}"]
#: Name of the environment variable with the Python of an environment that has the harness already.
PYTHON = "POSENC_LM_EVAL_PYTHON"
TEXTS = [("w1 w2 w3", " w4"), ("w1 w2 w3", " w9 w2"), ("w8", " w5 w6"), ("w5 w6 w5", " w20")]
SCORE = """
import json, sys
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
model = HFLM(sys.argv[1], trust_remote_code=True, dtype="float32", add_bos_token=True, device="cpu", batch_size=2)
texts = [Instance("loglikelihood", {}, tuple(text), i) for i, text in enumerate(json.loads(sys.argv[2]))]
print(json.dumps([score for score, _ in model.loglikelihood(texts)]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the Python of an environment with the harness; skip the tests if its packages cannot be had."""
    if PYTHON in os.environ:
        return os.environ[PYTHON]
    folder = tmp_path_factory.mktemp("lm_eval") / "env"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    installed = subprocess.run(
        [folder / "bin" / "pip", "install", "-q", *HARNESS], capture_output=True, text=True, check=False
    )
    if installed.returncode:
        pytest.skip(f"pip cannot install lm_eval: {installed.stderr.strip().splitlines()[-1]}")
    return str(folder / "bin" / "python")


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["rope", "learned+m4m"])
def test_the_harness_gets_the_likelihoods_of_the_model(name: str, python: str, tmp_path: Path) -> None:
    _, folder = exported(lm, lm.write_corpus(tmp_path / "data-bin"), tmp_path, "--pos-enc", name)
    offline = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **offline}
    command = [python, "-c", SCORE, folder, json.dumps(TEXTS)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    model, expected = fairseq_posenc.load(folder), []
    for context, choice in TEXTS:
        ids = torch.tensor([2, *(4 + int(word.removeprefix("w")) for word in f"{context}{choice}".split())])
        with torch.no_grad():
            scores = model(ids[None]).log_softmax(-1)[0, :-1].gather(1, ids[1:, None])[:, 0]
        expected.append(float(scores[-len(choice.split()) :].sum()))
    assert json.loads(done.stdout.splitlines()[-1]) == pytest.approx(expected, abs=1e-4)
