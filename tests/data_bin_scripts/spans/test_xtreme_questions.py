"""Test XTREME's question sets: their files, the scoring rules of each language, and missing or wrong files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fairseq")

import support_squad as s

from fairseq_posenc.data import spans
from fairseq_posenc.metrics import squad
from recipes.finetune_xtreme import score
from recipes.finetune_xtreme.sets import SETS
from recipes.lib.finetuning.questions.files import GOLD

#: For each set, the published path of a file, and the languages that are tested.
FILES = {
    "XQuAD": ("xquad/xquad.{}.json", ("en", "zh")),
    "MLQA": ("MLQA_V1/test/test-context-{0}-question-{0}.json", ("en", "de", "zh", "ar", "es", "hi", "vi")),
    "TyDiQA": ("tydiqa/tydiqa-goldp-v1.1-dev/tydiqa.goldp.{}.dev.json", ("en", "ko")),
}
#: Contexts with an article of the language, punctuation of other scripts, and Chinese between Latin letters.
TEXTS = {
    "en": "b the (c d), e",
    "de": "b das „c d“ e",
    "zh": "b 《c 中文d》 e",
    "ar": "b الc ، d e",
    "es": "b el ¿c d? e",
    "hi": "b c । d e",
    "vi": "b những c d e",
    "ko": "b ‘c 한국’ e",
}
#: The answers without articles and punctuation. By MLQA's rules these are right, by SQuAD's rules only in English.
BARE = {**dict.fromkeys(TEXTS, "c d"), "zh": "c 中文d", "ko": "c 한국"}


def questions(language: str) -> dict[str, Any]:
    text = TEXTS[language]
    answer = {"text": text[2:-2], "answer_start": 2}
    entries = [{"id": f"{language}{number}", "question": "What?", "answers": [answer]} for number in range(2)]
    return {"data": [{"paragraphs": [{"context": text, "qas": entries}]}]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("xtreme")
    s.checkpoint(folder / "plain")
    for name, languages in FILES.values():
        for code in languages:
            (folder / name.format(code)).parent.mkdir(parents=True, exist_ok=True)
            s.written(folder / name.format(code), questions(code))
    return folder


def prepared(place: Path, output: Path, *words: object) -> int:
    options = ["--checkpoint", place / "plain" / "checkpoint.pt", "--tokenizer-path", "words", "--longest", 24]
    options += ["--longest-question", 4, "--output", output, *words]
    return int(s.prepare_spans.main([str(word) for word in options]))


@pytest.mark.parametrize("task", SETS)
def test_right_answers_have_100_by_the_rules_of_each_language(
    task: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prepare the existing languages and name the missing ones; bare answers show the scoring rules."""
    assert prepared(place, tmp_path / "made", "--set", SETS[task].name, "--data", place) == 0
    printed = capsys.readouterr().out
    assert set(spans.splits(tmp_path / "made")) == set(FILES[task][1])
    missing = [code for code in SETS[task].languages if code not in FILES[task][1]]
    assert (f" has no file for {', '.join(missing)}" in printed) == bool(missing)
    s.called(score, "--task", task, "--data", tmp_path / "made", "--output", tmp_path / "scores.json")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert all((facts[GOLD]["em"], facts[GOLD]["f1"]) == (100, 100) for facts in scores.values())
    for code in FILES[task][1]:
        bare = {f"{code}{number}": BARE[code] for number in range(2)}
        (tmp_path / "bare" / code).mkdir(parents=True)
        s.written(tmp_path / "bare" / code / "predictions.json", bare)
    words = ("--predictions", tmp_path / "bare", "--output", tmp_path / "bare.json")
    s.called(score, "--task", task, "--data", tmp_path / "made", *words)
    scores = json.loads((tmp_path / "bare.json").read_text())
    assert {code: facts["em"] for code, facts in scores.items()} == {
        code: 100 if task == "MLQA" or code == "en" else 0 for code in FILES[task][1]
    }


def test_the_published_file_of_all_languages_is_parted_by_ids(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In TyDiQA's file of all languages, ids begin with the name of the language."""
    data = []
    for language, name in (("ko", "korean"), ("en", "english")):
        (article,) = questions(language)["data"]
        for number, entry in enumerate(article["paragraphs"][0]["qas"]):
            entry["id"] = f"{name}-{number}"
        data.append(article)
    (tmp_path / "tydiqa").mkdir()
    s.written(tmp_path / "tydiqa" / "tydiqa-goldp-v1.1-dev.json", {"data": data})
    options = ("--set", "tydiqa", "--data", tmp_path)
    english = ("--train", place / FILES["XQuAD"][0].format("en"))
    assert prepared(place, tmp_path / "made", *english, *options) == 0
    assert " has no file for ar, bn, fi, id, ru, sw, te" in capsys.readouterr().out
    ids = {split: [entry.id for entry in spans.questions(tmp_path / "made", split)] for split in ("train", "en", "ko")}
    assert ids.pop("train") == ["en0", "en1"]
    assert ids == {"en": ["english-0", "english-1"], "ko": ["korean-0", "korean-1"]}
    assert prepared(place, tmp_path / "no", *options, "--languages", "fi,ko") == 1
    assert "holds tydiqa.goldp.fi.dev.json or tydiqa-goldp-dev-finnish.json or tydiqa-goldp-v1.1-dev.json" in _error(
        capsys
    )
    apart = ("--eval", tmp_path / "tydiqa" / "tydiqa-goldp-v1.1-dev.json", "--without", f"tydiqa={tmp_path}")
    assert prepared(place, tmp_path / "no", *apart) == 1
    assert "--without leaves out all 4 questions" in _error(capsys)


def test_files_without_answers_are_not_scored(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """XTREME publishes some files without their answers."""
    content = questions("ko")
    for entry in content["data"][0]["paragraphs"][0]["qas"]:
        entry["answers"] = [{"text": "", "answer_start": 0}]
    s.written(tmp_path / "ko.json", content)
    options = ("--eval", f"ko={tmp_path / 'ko.json'}", "--bad", "skip")
    english = ("--eval", f"en={place / FILES['TyDiQA'][0].format('en')}")
    assert prepared(place, tmp_path / "both", *options, *english) == 0
    scoring = ("--task", "TyDiQA", "--output", tmp_path / "scores.json", "--data")
    s.called(score, *scoring, tmp_path / "both")
    assert "ko: the file has no answers, so the predictions are not scored" in capsys.readouterr().out
    assert list(json.loads((tmp_path / "scores.json").read_text())) == ["en"]
    assert prepared(place, tmp_path / "none", *options) == 0
    with pytest.raises(SystemExit, match="no file of TyDiQA has answers"):
        s.called(score, *scoring, tmp_path / "none")


@pytest.mark.parametrize(
    ("task", "language", "predicted", "exact"),
    [
        ("MLQA", "de", "„c d“", True),  # without its article; the marks are Unicode
        ("MLQA", "es", "c d", True),
        ("MLQA", "vi", "c d", True),
        ("XQuAD", "es", "c d", False),  # SQuAD's rules remove only English articles and ASCII marks
        ("XQuAD", "en", "c d", True),
    ],
)
def test_each_set_has_its_own_rules(task: str, language: str, predicted: str, exact: bool) -> None:
    (answer,) = questions(language)["data"][0]["paragraphs"][0]["qas"][0]["answers"]
    assert squad.rules(SETS[task].rules(language)).exact(answer["text"], predicted) == exact


def test_mlqa_counts_chinese_by_characters() -> None:
    mlqa, xquad = (squad.rules(SETS[task].rules("zh")) for task in ("MLQA", "XQuAD"))
    assert mlqa.f1("中文", "中") == pytest.approx(2 / 3)
    assert xquad.f1("中文", "中") == 0


def test_files_that_are_missing_are_refused(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--set", "xquad", "--data", place, "--languages")
    assert prepared(place, tmp_path / "no", *options, "de,zh") == 1
    message = "neither the folder nor its subfolder xquad holds xquad.de.json (plain or .gz). It has files for"
    assert f"{message} --languages zh." in _error(capsys)
    assert prepared(place, tmp_path / "no", *options, "fr") == 1
    assert "--languages fr: xquad has only the languages en,ar,de" in _error(capsys)
    (tmp_path / "xquad.de.part1.json").write_text("")
    (tmp_path / "xquad.de.part2.json").write_text("")
    assert prepared(place, tmp_path / "no", "--set", "xquad", "--data", tmp_path) == 1
    assert "xquad.de.part1.json, xquad.de.part2.json hold the same split" in _error(capsys)
    assert prepared(place, tmp_path / "no", "--set", "mlqa", "--data", tmp_path) == 1
    assert "holds test-context-en-question-en.json" in _error(capsys)


def _error(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def test_questions_that_cannot_be_scored_are_named(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = questions("en")
    first, second = content["data"][0]["paragraphs"][0]["qas"]
    first["answers"], second["answers"] = [], [{"text": "c", "answer_start": 0}]
    s.written(tmp_path / "xquad.en.json", content)
    options = ("--set", "xquad", "--data", tmp_path)
    assert prepared(place, tmp_path / "no", *options) == 1
    assert "en: 2 x no answer, refused: en0, en1" in _error(capsys)
    assert prepared(place, tmp_path / "made", *options, "--bad", "skip") == 0
    printed = capsys.readouterr().out
    assert "en: 1 x no answer, left out: en0" in printed
    assert "en: 1 x misplaced answer, scored as it is: en1" in printed
    assert [question.id for question in spans.questions(tmp_path / "made", "en")] == ["en1"]
