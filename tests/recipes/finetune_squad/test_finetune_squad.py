"""Test fine-tuning on SQuAD: what is refused, and what differs from the papers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("fairseq")

from recipes.lib.finetuning import published
from recipes.lib.finetuning.columns import main_columns, more_columns

ROOT = Path(__file__).resolve().parents[3]
SQUAD = ROOT / "recipes" / "finetune_squad" / "run.sh"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--length", 40), "--length 40 leaves no room for context after a question of --longest-question 40 pieces"),
        (("--train-file", ROOT / "setup.py"), "--train-file and --dev-file: give two different files, or neither"),
        (("--corpus", "builtin", "--version", "2.0"), "the built-in questions all have answers. Use --version 1.1"),
        (("--train.warmup-updates", 3), "--warmup"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_step(
    words: tuple[object, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "model.pt").write_text("")
    options = ("--pretrained", tmp_path / "model.pt", "--pos-enc", "m4", "--device", "cpu", "--dry-run")
    command = [SQUAD, "--preset", "small", "--output", tmp_path / "out", *options, *words]
    process = subprocess.run([str(word) for word in command], cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 1
    assert message in process.stderr


def test_other_sizes_and_questions_are_named(tmp_path: Path) -> None:
    split = {"given": 87_599, "questions": 87_598}
    record = {"version": "1.1", "splits": {"train": split, "valid": {"given": 10_570, "questions": 10_570}}}
    (tmp_path / "spans.json").write_text(json.dumps(record))
    columns = {"SQuAD1.1 F1": ("SQuAD", tmp_path)}
    lines = published.differences("M1-M4/BERT-large", {"m4": {"layers": 12, "dim": 768}}, columns)
    assert lines == ["12 layers of width 768, not 24 of width 1024", "SQuAD1.1 F1\t1 train questions left out"]
    record["splits"] = {"train": {"given": 5, "questions": 5}}
    (tmp_path / "spans.json").write_text(json.dumps(record))
    lines = published.differences("M4M/from roberta-base", {"m4": {"layers": 12, "dim": 768}}, columns)
    assert lines == ["SQuAD1.1 F1\t5 train questions, not 87,599", "SQuAD1.1 F1\tno valid questions"]


def test_the_best_threshold_is_a_further_column(tmp_path: Path) -> None:
    (tmp_path / "spans.json").write_text(json.dumps({"version": "2.0"}))
    scores = {"valid": {"em": 1.0, "f1": 2.0, "best_f1": 3.0, "best_f1_thresh": -1.5}}
    assert main_columns(tmp_path, "SQuAD", scores, "") == {"SQuAD2.0 EM": 1, "SQuAD2.0 F1": 2}
    assert more_columns("SQuAD", scores, "") == {"best f1": 3, "best f1 thresh": -1.5}
