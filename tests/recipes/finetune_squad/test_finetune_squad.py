"""Test fine-tuning on SQuAD: what differs from the papers, and the columns of the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("fairseq")

from recipes.lib.finetuning import published
from recipes.lib.finetuning.columns import main_columns, more_columns


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
