"""Test fine-tuning on SQuAD and for XTREME: what differs from the papers, the columns of the report, and the rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import support_squad as s

from fairseq_posenc.metrics import squad
from recipes.lib.finetuning import baselines, published
from recipes.lib.finetuning.columns import main_columns, more_columns
from recipes.lib.finetuning.tasks import QUESTIONS

# --- SQuAD


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


# --- XTREME


def questions(text: str) -> dict[str, Any]:
    entries = [{"id": f"q.{n}", "question": "c?", "answers": [{"text": text, "answer_start": 0}]} for n in range(2)]
    return {"data": [{"title": "t", "paragraphs": [{"context": "b c d e", "qas": entries}]}]}


def prepared(place: Path, name: str, *words: object) -> Path:
    source = place / "model"
    if not source.exists():
        s.checkpoint(source)
    words = ("--checkpoint", source / "checkpoint.pt", "--length", 24, "--bad", "skip", *words)
    return s.prepared(place / name, *words)


def test_files_without_answers_are_not_scored(tmp_path: Path) -> None:
    """XTREME publishes some files without their answers."""
    files = {
        code: s.written(tmp_path / f"{code}.json", questions("b" if code == "en" else "")) for code in ("en", "ko")
    }
    english = prepared(tmp_path, "SQuAD", "--train", files["en"])
    prepared(tmp_path, "TyDiQA", "--eval", f"en={files['en']}", "--eval", f"ko={files['ko']}")
    assert [name for *_, name, _ in baselines.splits(english, "")] == ["TyDiQA en"]
    (tmp_path / "TyDiQA").rename(tmp_path / "away")
    prepared(tmp_path, "TyDiQA", "--eval", f"ko={files['ko']}")
    with pytest.raises(SystemExit, match="no file of TyDiQA has answers"):
        baselines.splits(english, "")


def test_mlqa_has_rules_of_each_language(tmp_path: Path) -> None:
    file = s.written(tmp_path / "de.json", questions("b"))
    english = prepared(tmp_path, "SQuAD.m4", "--train", file)
    for name in ("MLQA.m4", "XQuAD.m4"):
        prepared(tmp_path, name, "--eval", f"de={file}")
    rules = {name: squad.rules(str(rules)) for *_, name, rules in baselines.splits(english, ".m4")}
    assert rules["MLQA de"].exact("der c d", "„c d“")  # without its article; the marks are Unicode
    assert not rules["XQuAD de"].exact("der c d", "c d")  # SQuAD's rules remove only English articles


def test_scores_are_means_over_languages(tmp_path: Path) -> None:
    scores = {name: {"em": n, "f1": 10.0 * n} for n, name in enumerate(("valid", "XQuAD en", "XQuAD de", "MLQA en"))}
    means = {"XQuAD EM": 1.5, "XQuAD F1": 15, "MLQA EM": 3, "MLQA F1": 30}
    assert main_columns(tmp_path, "SQuAD", scores, "") == means  # type: ignore[arg-type]
    assert more_columns("SQuAD", scores, "")["XQuAD de F1"] == 20  # type: ignore[arg-type]


def test_only_all_questions_in_all_languages_have_the_papers_mean(tmp_path: Path) -> None:
    def write(name: str, **splits: int) -> Path:
        (tmp_path / name).mkdir(exist_ok=True)
        given = {split: {"given": count, "questions": count} for split, count in splits.items()}
        (tmp_path / name / "spans.json").write_text(json.dumps({"version": "1.1", "splits": given}))
        return tmp_path / name

    english = write("SQuAD", train=87_599)
    write("TyDiQA", **QUESTIONS["TyDiQA"])
    assert published.of_questions("SQuAD", english, "TyDiQA") == []
    write("TyDiQA", **{code: count for code, count in QUESTIONS["TyDiQA"].items() if code != "fi"} | {"ko": 275})
    expected = ["275 ko questions, not 276", "no fi questions"]
    assert published.of_questions("SQuAD", english, "TyDiQA") == expected
