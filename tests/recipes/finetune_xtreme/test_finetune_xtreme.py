"""Test fine-tuning for XTREME: languages, scoring rules, and English data that choose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import support_squad as s
from support_recipes import planned, run, values

from fairseq_posenc.metrics import squad
from recipes.lib.finetuning import baselines, published
from recipes.lib.finetuning.columns import main_columns, more_columns
from recipes.lib.finetuning.tasks import QUESTIONS

SMALL = ("--preset", "small", "--pretrained", "m4.pt", "--device", "cpu", "--pos-enc", "m4", "--tasks")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with English questions for training, and questions of XQuAD in two languages."""
    for name in ("squad/train-v1.1.json", "xquad/xquad.de.json", "xquad/xquad.zh.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path


def test_without_english_questions_that_choose_the_last_checkpoint_is_scored(folder: Path) -> None:
    words = ("finetune_xtreme", *SMALL, "XQuAD", "--corpus", folder)
    (train,) = (command for command in planned(*words, cwd=folder).values() if command[0] == "fairseq-train")
    assert "--disable-validation" in train
    assert "--best-checkpoint-metric" not in train
    words = (*words, "--learning-rates", "1,2")
    assert (
        "Choosing among several --learning-rates or --epochs needs English questions" in run(*words, cwd=folder).stderr
    )
    (folder / "squad" / "dev.json.gz").write_text("")
    commands = planned(*words, cwd=folder).values()
    trainings = [command for command in commands if command[0] == "fairseq-train"]
    assert [values(command, "--best-checkpoint-metric") for command in trainings] == [["spans"], ["spans"]]
    (prepare,) = (command for command in commands if "--without" in command)
    assert values(prepare, "--eval") == ["squad/dev.json.gz"]
    assert values(prepare, "--without")[0].startswith("xquad=")  # nothing is trained or chosen by what is scored


def test_one_model_answers_all_sets_in_the_languages_that_they_have(folder: Path) -> None:
    words = ("finetune_xtreme", *SMALL, "XNLI,XQuAD,TyDiQA", "--languages", "en,fi,zh", "--corpus", folder)
    commands = planned(*words, cwd=folder).values()
    assert sum(command[0] == "fairseq-train" for command in commands) == 2
    sets = [command for command in commands if "--set" in command]
    languages = {values(command, "--set")[0]: values(command, "--languages")[0] for command in sets}
    assert languages == {"xquad": "en,zh", "tydiqa": "en,fi"}
    process = run("finetune_xtreme", *SMALL, "MLQA", "--languages", "fi", "--corpus", folder, "--dry-run", cwd=folder)
    assert "--languages fi: MLQA has only the languages en,ar,de,es,hi,vi,zh" in process.stderr
    assert "fairseq-train" not in process.stdout
    process = run("finetune_xtreme", *SMALL, "MLQA", "--corpus", folder / "xquad", cwd=folder)
    assert "has train-v1.1.json or train.json. Give --train-file." in process.stderr


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
