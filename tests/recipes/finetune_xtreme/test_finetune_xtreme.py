"""Test fine-tuning for XTREME: languages, scoring rules, and English data that choose."""

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
