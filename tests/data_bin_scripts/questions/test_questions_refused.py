"""Test prepare_questions.py: questions with problems, options without effect, and the scripts that call it."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import pytest
from questions import pipeline
from questions.checks import nearest
from support_prepared import CITY, DATA, Prepared, asked, items, needs_data, problems, squad
from support_scripts import hashes, script

pytest_plugins = ["support_prepared"]


# --- what is wrong


def bad() -> dict[str, Any]:
    return squad(
        [
            (
                CITY,
                [
                    asked("fine", "Who?", ("King Abel", CITY.index("King"))),
                    asked("moved", "Where?", ("Zorn", CITY.rindex("Zorn") - 4)),  # the second occurrence is nearer
                    asked("second", "When?", ("1201", CITY.index("1200")), ("1200", CITY.index("1200"))),
                    asked("nowhere", "Why?", ("Berlin", 3)),
                    asked("negative", "How?", ("towers", -7)),
                    asked("none", "What?"),
                    asked("empty", " ", ("1200", CITY.index("1200"))),
                    asked("no answer text", "Who is it?", (" ", 3)),
                    asked("long", "Who " * 60, ("King Abel", CITY.index("King"))),
                    asked("impossible", "Who knows?", is_impossible=True),
                ],
            ),
            (" ", [asked("no context", "Who?", ("a", 0))]),
        ]
    )


KINDS = {
    "moved": ["misplaced answer"],
    "second": ["misplaced answer"],
    "nowhere": ["misplaced answer", "no answer"],
    "negative": ["misplaced answer"],
    "none": ["no answer"],
    "empty": ["empty question"],
    "no answer text": ["empty answer", "no answer"],
    "long": ["long question"],
    "impossible": ["unanswerable"],
    "no context": ["empty context"],
}


def kinds(listed: list[dict[str, Any]]) -> dict[str, list[str]]:
    by_id: dict[str, list[str]] = {}
    for problem in listed:
        by_id.setdefault(problem["id"], []).append(problem["kind"])
    return by_id


def test_what_is_wrong_is_counted_named_and_refused(prepared: Prepared) -> None:
    ended = prepared.run(*prepared.both(bad()))
    assert ended.status == 1
    assert "train: 4 x misplaced answer, refused: moved, second, nowhere, negative" in ended.error
    assert "train: 1 x unanswerable, left out: impossible" in ended.error
    assert "--bad skip leaves out bad questions. --bad repair" in ended.error
    listed = problems(prepared.folder / "out.problems.jsonl")
    assert {name: [kind for kind in reported if kind != "no answer"] for name, reported in kinds(listed).items()} == {
        name: [kind for kind in reported if kind != "no answer"] for name, reported in KINDS.items()
    }
    assert not prepared.output.exists()
    assert not (prepared.folder / "out.partial").exists()
    moved = next(problem for problem in listed if problem["id"] == "moved")
    assert moved["where"] == "train.json: article 1, paragraph 1 (T0)"
    empty = next(problem for problem in listed if problem["id"] == "no context")
    assert empty["where"].endswith("article 1, paragraph 2 (T0)")
    assert moved["what"].startswith("'Zorn' is not at offset ")


def test_what_is_wrong_is_left_out_or_repaired_and_told(prepared: Prepared) -> None:
    words = prepared.both(bad())
    prepared.run(*words)
    ended = prepared.run(*words, "--bad", "skip")
    assert ended.status == 0, ended.error
    assert [line["id"] for line in items(prepared.output).surface] == ["fine", "second"]
    assert "train: 1 x long question, left out: long" in ended.out
    assert not (prepared.folder / "out.problems.jsonl").exists()  # the refused run wrote it
    repaired = prepared.made(*words, "--bad", "repair", output=prepared.folder / "two")
    kept = items(repaired)
    assert [line["id"] for line in kept.surface] == ["fine", "moved", "second", "negative", "long"]
    assert kinds(problems(repaired / "problems.jsonl")) == KINDS | {"negative": ["misplaced answer"]}
    assert kept.surface[1]["sentence"].startswith("King Abel (of Zorn)")  # the nearest occurrence
    assert len(kept.target[4]) == 51
    assert kept.surface[4]["question"] == "Who " * 60
    record = json.loads((repaired / "questions.json").read_text())
    assert record["problems"]["misplaced answer"] == {"left out": 2, "repaired": 2}


def test_problems_are_written_whole(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of the last attempt stays if writing a new list fails."""
    prepared.run(*prepared.both(bad()))
    path = prepared.folder / "out.problems.jsonl"
    before = path.read_bytes()

    def full(*paths: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    assert "no space left" in prepared.run(*prepared.both(bad()), "--bad", "refuse").error
    assert path.read_bytes() == before


def test_long_answers_are_refused_or_cut(prepared: Prepared) -> None:
    answer = CITY[:33]
    content = squad([(CITY, [asked("a", "What?", (answer, 0)), asked("b", "When?", ("1200", CITY.index("1200")))])])
    words = [*prepared.both(content, content), "--longest-answer", 5]
    assert "train: 1 x long answer, refused: a" in prepared.run(*words).error
    prepared_items = items(prepared.made(*words, "--bad", "repair"))
    assert prepared_items.source[0][:8] == "<s> the old city of zorn </s> the".split()


@pytest.mark.parametrize(
    ("text", "start", "place"), [("ab", 4, 3), ("ab", 1, 0), ("ab", 99, 8), ("x", 1, None), ("aa", 0, None)]
)
def test_the_nearest_occurrence(text: str, start: int, place: int | None) -> None:
    assert nearest("ab.ab...ab", text, start) == place


def test_a_split_without_any_question_left_is_refused(prepared: Prepared) -> None:
    only = squad([(CITY, [asked("x", "Who?", is_impossible=True)])])
    ended = prepared.run(*prepared.both(valid=only))
    assert ended.status == 1
    assert "valid: all 1 questions are left out" in ended.error


# --- options


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--text", "x.json", "--train", "y.json"], "Give either --text, or --train and --valid"),
        (["--train", "y.json"], "--train and --valid are both required"),
        (["--train", "a.json", "--valid", "b.json", "--seed", "3"], "--seed has an effect only"),
        (["--train", "src-a.txt", "--valid", "src-b.txt", "--context", "sentence"], "src-*.txt files do not have"),
        (["--train", "a.json", "--valid", "b.json", "--tokenizer-path", "d", "--cased"], "no effect with --tokenizer-"),
        (["--train", "a.json", "--valid", "b.json", "--longest", "100"], "leaves no room for a context"),
        (["--train", "a.json", "--valid", "b.json", "--limit", "0"], "0 is not allowed. Give at least 1."),
    ],
)
def test_options_without_effect_are_refused(prepared: Prepared, words: list[str], message: str) -> None:
    ended = prepared.run(*words)
    assert ended.status == 2
    assert message in ended.error


def test_limits_take_the_first_questions(prepared: Prepared) -> None:
    folder = prepared.made(*prepared.both(), "--limit", 3, "--limit-valid", 1)
    assert [len(items(folder, split).surface) for split in ("train", "valid")] == [3, 1]


def test_what_is_there_is_not_touched(prepared: Prepared) -> None:
    prepared.made(*prepared.both())
    ended = prepared.run(*prepared.both())
    assert (ended.status, ended.error) == (
        1,
        f"error: {prepared.output} exists. Move it, or choose another --output.\n",
    )


def test_neither_workers_nor_places_change_a_byte(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "CHUNK", 2)
    words = [*prepared.both(bad()), "--bad", "repair"]
    first = hashes(prepared.made(*words))
    moved = [prepared.folder / "else" / f"{split}.json" for split in ("train", "valid")]
    moved[0].parent.mkdir()
    for path in moved:
        shutil.copy(prepared.folder / path.name, path)
    second = prepared.folder / "two"
    assert (
        hashes(prepared.made("--train", moved[0], "--valid", moved[1], *words[4:], "--workers", 2, output=second))
        == first
    )


# --- the scripts


def test_scripts_fetch_and_prepare() -> None:
    result = script("squad", "--dry-run", "--version", "2.0", "--bad", "skip")
    assert result.returncode == 0, result.stderr
    fetch, prepare = result.stdout.splitlines()
    squad_2 = fetch
    assert "squad/train-v2.0.json squad/dev-v2.0.json --output data/raw" in fetch
    assert "--valid data/raw/squad/dev-v2.0.json --output data-bin/squad --bad skip" in prepare
    fetch, prepare = script("cmrc", "--dry-run", "--raw", "r").stdout.splitlines()
    assert fetch.count("cmrc2018/cmrc2018_") == 3
    assert "--valid r/cmrc2018/cmrc2018_dev.json --test r/cmrc2018/cmrc2018_trial.json" in prepare
    assert prepare.endswith("--tokenizer chars --language zh ")
    (alone,) = script("squad", "--dry-run", "--fetch-only", "--version", "2.0").stdout.splitlines()
    assert alone == squad_2
    fetch, prepare = script(
        "squad", "--dry-run", "--checkpoint", "m.pt", "--version=2.0", "--longest", "512"
    ).stdout.splitlines()
    assert fetch == squad_2
    assert "prepare_spans.py --version 2.0 --train data/raw/squad/train-v2.0.json --eval data/raw/squad/dev" in prepare
    assert "dev-v2.0.json --output data-bin/squad-spans --checkpoint m.pt --longest 512" in prepare
    words = ("--checkpoint=m.pt", "--text", "mine", "--output", "data-bin/squad")
    (own,) = script("squad", "--dry-run", *words).stdout.splitlines()
    assert "prepare_spans.py --version 1.1 --text mine --output data-bin/squad --checkpoint=m.pt" in own
    (own,) = script("cmrc", "--dry-run", "--text", "mine.json", "--tokenizer-path", "d").stdout.splitlines()
    assert "--text mine.json --output data-bin/cmrc2018 --tokenizer-path d --language zh" in own


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("squad", ["--version", "3"], "--version 3: give 1.1 or 2.0"),
        ("squad", ["--version", "2.0", "--text", "x"], "--version has no effect with --text"),
        ("squad", ["--fetch-only", "--text", "x"], "--fetch-only fetches nothing with --text"),
        ("squad", ["--fetch-only", "--bad", "skip"], "--fetch-only prepares nothing. Leave out --bad skip"),
        ("squad", ["--fetch-only", "--checkpoint", "x"], "--fetch-only prepares nothing. Leave out --checkpoint x"),
        ("squad", ["--checkpoint", "x", "--eval=y"], "--eval: give your own files to prepare_spans.py, or a folder"),
        ("squad", ["--train", "x"], "--train: give your own files to prepare_questions.py"),
        ("cmrc", ["--fetch-limit", "1"], "--fetch-limit: files are fetched whole"),
    ],
)
def test_scripts_refuse(name: str, words: list[str], message: str) -> None:
    result = script(name, *words, "--dry-run")
    assert result.returncode == 1
    assert message in result.stderr


# --- real questions


@needs_data
def test_cmrcs_misplaced_answers_are_counted(prepared: Prepared) -> None:
    files = [DATA / "cmrc2018" / f"cmrc2018_{name}.json.gz" for name in ("dev", "trial")]
    ended = prepared.run("--train", files[0], "--valid", files[1])
    assert ended.status == 1
    misplaced = [
        problem for problem in problems(prepared.folder / "out.problems.jsonl") if problem["kind"] == "misplaced answer"
    ]
    assert [sum(problem["split"] == split for problem in misplaced) for split in ("train", "valid")] == [200, 5]
    assert len({problem["id"] for problem in misplaced if problem["split"] == "train"}) == 176
