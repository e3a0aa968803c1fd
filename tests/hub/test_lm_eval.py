"""Test lm-evaluation-harness on an exported language model, in an environment without fairseq and this package.

The harness installs the newest transformers that it allows, so the code of exported models is tested with that, too.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch

pytest.importorskip("fairseq")
pytest.importorskip("transformers")

from integration import lm
from support_exchange import exported

import fairseq_posenc

#: Python of an environment with `pip install lm_eval[hf]==0.4.13` and the same torch.
PYTHON = os.environ.get("POSENC_LM_EVAL_PYTHON")
TEXTS = [("w1 w2 w3", " w4"), ("w1 w2 w3", " w9 w2"), ("w8", " w5 w6"), ("w5 w6 w5", " w20")]
SCORE = """
import json, sys
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
model = HFLM(sys.argv[1], trust_remote_code=True, dtype="float32", add_bos_token=True, device="cpu", batch_size=2)
texts = [Instance("loglikelihood", {}, tuple(text), i) for i, text in enumerate(json.loads(sys.argv[2]))]
print(json.dumps([score for score, _ in model.loglikelihood(texts)]))
"""


@pytest.mark.long
@pytest.mark.skipif(not PYTHON, reason="POSENC_LM_EVAL_PYTHON names no Python with lm_eval")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["rope", "learned+m4m"])
def test_the_harness_gets_the_likelihoods_of_the_model(name: str, tmp_path: Path) -> None:
    _, folder = exported(lm, lm.write_corpus(tmp_path / "data-bin"), tmp_path, "--pos-enc", name)
    offline = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **offline}
    command = [str(PYTHON), "-c", SCORE, folder, json.dumps(TEXTS)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    model, expected = fairseq_posenc.load(folder), []
    for context, choice in TEXTS:
        ids = torch.tensor([2, *(4 + int(word.removeprefix("w")) for word in f"{context}{choice}".split())])
        with torch.no_grad():
            scores = model(ids[None]).log_softmax(-1)[0, :-1].gather(1, ids[1:, None])[:, 0]
        expected.append(float(scores[-len(choice.split()) :].sum()))
    assert json.loads(done.stdout.splitlines()[-1]) == pytest.approx(expected, abs=1e-4)
