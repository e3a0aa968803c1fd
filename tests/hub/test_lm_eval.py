"""Test lm-evaluation-harness on an exported language model, in an environment without fairseq and this package.

The harness installs the newest transformers that it allows, so the code of exported models is tested with that, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("fairseq")
pytest.importorskip("transformers")

from integration import lm
from support_exchange import exported

import fairseq_posenc

HARNESS = ["lm_eval[hf]==0.4.13", f"torch=={torch.__version__.partition('+')[0]}"]
#: Name of the environment variable with the Python of an environment that has the harness already.
PYTHON = "POSENC_LM_EVAL_PYTHON"
DOCS = [
    {"text": "w1 w2 w3", "choices": ["w4", "w9 w2"], "label": 0},
    {"text": "w8", "choices": ["w4", "w5 w6", "w7"], "label": 1},
    {"text": "w5 w6 w5", "choices": ["w7 w1", "w20"], "label": 1},
]
TASK = """task: toy
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{{{text}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{label}}}}"
metric_list: [{{metric: acc}}]
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


def log_likelihood(model: Any, context: str, choice: str) -> float:
    """Return the log-probability of a choice after </s> and the context."""
    ids = [2, *(4 + int(word.removeprefix("w")) for word in f"{context} {choice}".split())]
    with torch.no_grad():
        log_probs = model(torch.tensor([ids])).log_softmax(-1)[0, :-1]
    scores = log_probs.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    return float(scores[-len(choice.split()) :].sum())


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["rope", "learned+m4m"])
def test_the_harness_gets_the_likelihoods_of_the_model(name: str, python: str, tmp_path: Path) -> None:
    data = lm.write_corpus(tmp_path / "data-bin")
    _, folder = exported(lm, data, tmp_path, "--pos-enc", name)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "toy.jsonl").write_text("".join(f"{json.dumps(doc)}\n" for doc in DOCS), "utf-8")
    (tmp_path / "tasks" / "toy.yaml").write_text(TASK.format(file=tmp_path / "toy.jsonl"), "utf-8")
    settings = f"pretrained={folder},trust_remote_code=True,dtype=float32,add_bos_token=True"
    command = f"{python} -m lm_eval run --model hf --model_args {settings} --tasks toy --include_path {tmp_path}/tasks"
    command += f" --device cpu --batch_size 2 --log_samples --output_path {tmp_path}/out"
    offline = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    environment = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **offline}
    done = subprocess.run(command.split(), env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (samples,) = (tmp_path / "out").rglob("samples_toy_*.jsonl")
    rows = sorted(map(json.loads, samples.read_text("utf-8").splitlines()), key=lambda row: row["doc_id"])
    model, right = fairseq_posenc.load(folder), 0
    for doc, row in zip(DOCS, rows, strict=True):
        expected = [log_likelihood(model, doc["text"], choice) for choice in doc["choices"]]
        assert [float(pair[0]) for pair in row["filtered_resps"]] == pytest.approx(expected, abs=1e-4)
        right += expected.index(max(expected)) == doc["label"]
    (results,) = (tmp_path / "out").rglob("results_*.json")
    assert json.loads(results.read_text("utf-8"))["results"]["toy"]["acc,none"] == pytest.approx(right / len(DOCS))
