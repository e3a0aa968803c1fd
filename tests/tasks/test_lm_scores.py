"""Test that the language model recipe computes the scores of a text as the definition and fairseq do.

By default, the tests make a small run. With POSENC_LM_RUN=FOLDER, they use the run in this folder and two thousand
tokens of its text, which takes minutes per encoding.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import support_warm
import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils
from support_plain_lm import by_prefixes, mask
from torch import Tensor

from recipes.lib import runs
from recipes.lm_wikitext103.evaluate import clamped

REAL = os.environ.get("POSENC_LM_RUN")
ROOT = Path(__file__).parents[2]
TOKENS = 2000 if REAL else 120
Row = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run."""
    if REAL:
        return Path(REAL).resolve()
    output = tmp_path_factory.mktemp("lm")
    words = ["--preset", "smoke", "--jobs", "1", "--pos-enc", "xl", "--mem-eval", "0,16,40", "--output", output]
    script = shlex.join([str(word) for word in ("recipes/lm_wikitext103/run.sh", *words, "--device", "cpu")])
    process = support_warm.shell(script, tmp_path_factory.mktemp("programs") / "bin", cwd=ROOT)
    assert process.returncode == 0, process.stderr
    return output


def rows(run: Path) -> list[Row]:
    """Return a row for each model and memory length, with the perplexity and how it was evaluated."""
    ours: dict[str, Any] = {**runs.settings((run / "settings.sh").read_text())}
    table = []
    for model in runs.models(run):
        state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint(run, model.name)))
        encoding, args = state["cfg"].model.pos_enc, state["cfg"].model.pos_enc_args or ""
        for key, scores in model.scores.items():
            if key.startswith("memory "):
                memory = int(key.split()[1])
                longer = memory > int(ours["length"])
                segment = int(ours["eval_segment" if longer else "length"])
                same_length = longer and ours["eval_same_length"] == "true"
                args = clamped(encoding, args, int(ours["eval_clamp"])) if longer else args
                row = {"name": model.name, "memory": memory, "segment": segment, "same length": same_length}
                table.append({**row, "options": args, "perplexity": scores["perplexity"], **ours})
    return table


def test_the_smoke_preset_runs_from_text_to_table(run: Path) -> None:
    tokens = json.loads((run / "text" / "counts.json").read_text())["splits"]["test"]["tokens"]
    assert all(model.scores["tokens"] == tokens for model in runs.models(run))
    assert (run / "curves.png").stat().st_size > 1000
    if not REAL:
        settings = [(row["memory"], row["segment"], row["options"]) for row in rows(run)]
        assert settings == [(0, 16, ""), (16, 16, ""), (40, 8, "clamp=20")]
        assert all(1 < row["perplexity"] < 120 for row in rows(run))


@pytest.mark.timeout(0 if REAL else 900)
def test_the_perplexity_is_the_plain_definition(run: Path, beginning: Path, tmp_path: Path) -> None:
    """Compare to 1e-4 with a forward pass over the prefix of each token; in a real run only rows as trained."""
    for number, row in enumerate(row for row in rows(run) if not REAL or row["memory"] == row["segment"]):
        actual = evaluated(run, row, beginning, tmp_path / f"{number}.json")
        expected = defined(run, row, beginning)
        print(f"{row['name']}, memory {row['memory']}: recipe {actual:.6f}, plain definition {expected:.6f}")
        assert actual == pytest.approx(expected, rel=1e-4)


def test_fairseqs_own_evaluation_agrees(run: Path) -> None:
    """Compare to 1e-6 with fairseq-eval-lm, for each row."""
    for row in rows(run):
        command = [sys.executable, "-m", "fairseq_cli.eval_lm", run / "data-bin", "--user-dir", "fairseq_posenc"]
        command += ["--task", "posenc_lm_memory", "--path", checkpoint(run, row["name"]), "--gen-subset", row["split"]]
        command += ["--batch-size", row["eval_batch"], "--eval-mem-length", row["memory"]]
        command += ["--eval-segment-length", row["segment"], *(["--same-length"] if row["same length"] else [])]
        command += ["--model-overrides", json.dumps({"pos_enc_args": row["options"]})]
        output = support_warm.run([*map(str, command), "--cpu"], cwd=ROOT)
        assert output.returncode == 0, output.stderr
        nats = re.findall(r"per token: nll ([0-9.]+)", output.stdout + output.stderr)
        assert float(nats[-1]) == pytest.approx(math.log(row["perplexity"]), abs=1e-6)


# --- how


@pytest.fixture(scope="module")
def beginning(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write data whose test text is the beginning of the run's test text."""
    folder, text, tokens = tmp_path_factory.mktemp("beginning"), "", 0
    with (run / "text" / "test.txt").open(encoding="utf-8") as lines:
        while tokens < TOKENS:
            text += (line := next(lines))
            tokens += len(line.split()) + 1
    (folder / "test.txt").write_text(text, encoding="utf-8")
    command = ["--only-source", "--testpref", folder / "test.txt", "--destdir", folder / "data-bin"]
    command += ["--srcdict", run / "data-bin" / "dict.txt"]
    support_warm.run([sys.executable, "-m", "fairseq_cli.preprocess", *command]).check_returncode()
    return folder / "data-bin"


def checkpoint(run: Path, name: str) -> Path:
    return run / "checkpoints" / name / "checkpoint_best.pt"


def evaluated(run: Path, row: Row, data: Path, output: Path) -> float:
    """Return the recipe's result for one stream."""
    command = ["--checkpoint", checkpoint(run, row["name"]), "--data", data, "--split", "test", "--streams", 1, "--cpu"]
    command += ["--length", row["length"], "--memories", row["memory"], "--segment", row["eval_segment"]]
    command += ["--same-length", row["eval_same_length"], "--clamp", row["eval_clamp"], "--output", output]
    words = [sys.executable, "-m", "recipes.lm_wikitext103.evaluate", *map(str, command)]
    support_warm.run(words, cwd=ROOT).check_returncode()
    return float(json.loads(output.read_text())["best"]["perplexity"])


@torch.no_grad()
def defined(run: Path, row: Row, data: Path) -> float:
    """Compute the same result by the definition."""
    overrides = {"data": str(data), "pos_enc_args": row["options"]}
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint(run, row["name"]))], overrides)
    model, tokens = models[0].eval(), torch.cat([*data_utils.load_indexed_dataset(str(data / "test"), task.dictionary)])
    text = torch.cat([tokens.new_tensor([task.dictionary.eos()]), tokens]).long()[None]
    allowed = mask(len(tokens), row["segment"], row["memory"], row["same length"])
    model = model if REAL else model.double()
    features = by_prefixes(model, text[:, :-1], allowed, literally=not REAL)
    nats = -log_probabilities(model, features, text[:, 1:])
    return math.exp(float(nats.double().mean()))


def log_probabilities(model: Any, states: Tensor, targets: Tensor) -> Tensor:
    """Return log-probabilities [B, N], computed in parts so that [.., V] fits into memory."""
    softmax = model.decoder.adaptive_softmax
    parts = [
        softmax.get_log_prob(part, None).gather(-1, target[..., None])[..., 0]
        for part, target in zip(states.split(100, 1), targets.split(100, 1), strict=True)
    ]
    return torch.cat(parts, 1)
