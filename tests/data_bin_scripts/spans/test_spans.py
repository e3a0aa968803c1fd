"""Test prepare_spans.py: windows of questions, sets in several languages, and questions with problems."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import prepared as shared
import pytest
import question_files
import support_squad as s
from support_scripts import hashes

from fairseq_posenc.data import spans

DEV = s.squad(40, 2)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("squad")
    s.checkpoint(folder / "plain")
    return folder


@pytest.fixture(scope="module")
def data(place: Path) -> Path:
    return s.toy(place, DEV)


def run(place: Path, *words: object) -> int:
    """Run prepare_spans.py with the output folder `place`/no."""
    shape = ["--tokenizer", "words", "--longest-question", "4", "--checkpoint", place / "plain" / "checkpoint.pt"]
    return int(s.prepare_spans.main([*map(str, [*shape, *words]), "--output", str(place / "no")]))


# --- windows


def test_windows_are_of_the_questions(data: Path) -> None:
    record = spans.record(data)
    assert record["splits"]["train"]["answers given back"] == 300
    assert record["splits"]["valid"]["in several windows"] == 0
    questions, texts, rows = spans.questions(data, "valid"), spans.contexts(data, "valid"), spans.rows(data, "valid")
    assert {question.id: question.answers for question in questions} == s.texts(DEV)
    read, scored = (question_files.read(path, []) for path in (data.parent / "dev.json.gz", data / "valid.scored.json"))
    kept = [[question._replace(where="") for question in part] for part in (read, scored)]
    assert kept[0] == kept[1]  # the sets' own scripts read the scored questions
    for question, row in zip(questions, rows, strict=True):
        first, last = row.start - row.column, row.end - row.column
        offsets = texts[question.context].offsets
        assert texts[question.context].text[offsets[first][0] : offsets[last][1]] == question.answers[0]


def test_long_contexts_overlap_and_processes_change_no_byte(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "CHUNK", 2)
    monkeypatch.setattr(s.prepare_spans, "BERT_LENGTH", 40)
    source, file = place / "plain" / "checkpoint.pt", s.written(place / "long.json", s.squad(9, 3, 40, without=True))
    options = ["--version", "2.0", "--length", 20, "--stride", 5, "--longest-question", 2, "--separators", 1]
    words = ["--checkpoint", source, "--train", file, "--eval", f"dev={file}.copy.json", *options]
    (place / "long.json.copy.json").write_text(file.read_text().replace('"id": "q', '"id": "d'))
    one, three = (s.prepared(place / f"long{n}", *words, "--workers", n) for n in (1, 3))
    assert hashes(one) == hashes(three)
    counts = spans.record(one)["splits"]["train"]
    assert (counts["questions"], counts["in several windows"], counts["without answer"]) == (9, 9, 3)
    assert (counts["answers given back"], counts["sequences over 512 pieces"]) == (6, 9)
    rows, texts = spans.rows(one, "train"), spans.contexts(one, "train")
    assert {row.question for row in rows if row.start} == {0, 1, 3, 4, 6, 7}
    for number, text in enumerate(texts):
        firsts = [row.first for row in rows if row.question == number]
        assert firsts == [*range(0, len(text.offsets) - 15 + 5, 5)][: len(firsts)]  # 20 - 2 - 1 - 2 pieces of context
        assert all(row.length == 15 for row in rows if row.question == number and row.first != firsts[-1])
        assert max(row.first + row.length for row in rows if row.question == number) == len(text.offsets)


def test_files_are_found_by_their_names_or_split_by_article(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, source = place / "mine", place / "plain" / "checkpoint.pt"
    folder.mkdir()
    s.written(folder / "train.json", s.squad(9, 13))
    (folder / "dev-v1.1.json.gz").write_bytes(gzip.compress(json.dumps(s.squad(5, 14)).encode()))
    output = s.prepared(place / "folder", "--checkpoint", source, "--corpus", folder)
    assert {split: len(spans.questions(output, split)) for split in ("train", "valid")} == {"train": 9, "valid": 5}
    s.written(folder / "dev.json", s.squad(5, 14))
    assert run(place, "--corpus", folder) == 1
    assert (
        "both dev.json and dev-v1.1.json.gz, which hold the same split. Give the files with --train and --eval"
        in capsys.readouterr().err
    )
    lone = s.written(place / "lone.json", s.squad(30, 8))
    output = s.prepared(place / "lone", "--checkpoint", source, "--corpus", lone, "--seed", 2, "--limit", 20)
    ids = {split: {question.id for question in spans.questions(output, split)} for split in ("train", "valid")}
    assert [len(split_ids) for split_ids in ids.values()] == [20, 6]
    assert not ids["train"] & ids["valid"]


#: For each set of XTREME, the published path of a file, the languages that are tested, and one without a file.
SETS = {
    "xquad": ("xquad/xquad.{}.json", ("en", "zh"), "xquad.ar.json"),
    "mlqa": ("MLQA_V1/test/test-context-{0}-question-{0}.json", ("en", "de"), "test-context-ar-question-ar.json"),
    "tydiqa": (
        "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa.goldp.{}.dev.json.gz",
        ("en", "ko"),
        "tydiqa-goldp-dev-arabic.json",
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_sets_in_several_languages(name: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, languages, missing = SETS[name]
    for code in languages:
        file = tmp_path / path.format(code)
        file.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps(s.squad(3, len(code))).encode()
        file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    words = ("--checkpoint", place / "plain" / "checkpoint.pt", "--set", name, "--corpus", tmp_path, "--length", 24)
    assert spans.splits(s.prepared(tmp_path / "out", *words)) == [*languages]
    assert f"{name}: {tmp_path} has no file for ar, " in capsys.readouterr().out
    assert run(place, *words, "--languages", f"{languages[1]},ar") == 1
    assert f"{missing} (plain or .gz). It has files for these languages: {languages[1]}." in capsys.readouterr().err
    assert run(place, *words, "--languages", "fr") == 1
    assert f"--languages fr: {name} has only the languages en,ar" in capsys.readouterr().err


# --- what is refused or left out


def bad() -> dict[str, Any]:
    """Return questions with problems: misplaced answers, an empty context, a repeated id, missing fields."""
    content = s.squad(8, 4)
    entries = [entry for article in content["data"] for part in article["paragraphs"] for entry in part["qas"]]
    entries[0]["answers"][0]["answer_start"] += 1
    entries[1]["answers"][0]["text"] = "nowhere"
    content["data"][2]["paragraphs"][0]["context"] = " "
    entries[3]["id"] = entries[4]["id"]
    del entries[5]["answers"][0]["answer_start"]
    del content["data"][6]["paragraphs"][0]["context"]
    return content


def test_bad_questions_are_counted_named_and_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(place, "--train", s.written(place / "bad.json", bad())) == 1
    error = capsys.readouterr().err
    for kind, named in {
        "2 x misplaced answer": "q4.0, q4.1",
        "1 x empty context": "q4.2",
        "1 x duplicate id": "q4.4",
        "2 x malformed question": "q4.5, article 7, paragraph 1",
    }.items():
        assert f"train: {kind}, refused: {named}" in error
    assert not (place / "no").exists()
    lines = [json.loads(line) for line in (place / "no.problems.jsonl").read_text().splitlines()]
    assert len(lines) == 8  # a question whose only answer is nowhere has two problems
    assert {"bad.json: article 6, paragraph 1 (5)"} == {line["where"] for line in lines if line["id"] == "q4.5"}
    assert any("'answer_start' is None, but must be a number" in line["what"] for line in lines)
    assert run(place, "--eval", place / "bad.json") == 1
    assert "valid: 2 x misplaced answer, refused: q4.0, q4.1" in capsys.readouterr().err


@pytest.mark.parametrize(("how", "left"), [("skip", 2), ("repair", 3)])
def test_bad_questions_are_left_out_or_repaired(place: Path, how: str, left: int) -> None:
    """Evaluation splits leave out only the questions that cannot be read."""
    file, other = s.written(place / "bad.json", bad()), place / "bad-dev.json"
    other.write_text(file.read_text().replace('"id": "q', '"id": "d'))
    source = place / "plain" / "checkpoint.pt"
    options = ["--checkpoint", source, "--train", file, "--eval", other, "--bad", how, "--length", 24]
    output = s.prepared(place / how, *options)
    counts = spans.record(output)["splits"]
    assert (counts["train"]["given"], counts["train"]["questions"], counts["valid"]["questions"]) == (5, left, 5)
    assert [question.id for question in spans.questions(output, "valid")] == ["d4.0", "d4.1", "d4.2", "d4.4", "d4.7"]
    assert spans.record(output)["problems"]["empty context"] == {"left out": 1, "scored as it is": 1}


def test_questions_are_on_one_side_only(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Refuse questions in training and evaluation, and leave out those of another set, before limits are applied."""
    whole, dev = s.squad(12, 21), s.written(place / "dev21.json", {"data": s.squad(12, 21)["data"][9:]})
    train = s.written(place / "train21.json", whole)
    assert run(place, "--train", train, "--eval", f"de={train}") == 1
    assert f"--train and de are the same file, {train}" in capsys.readouterr().err
    assert run(place, "--train", train, "--eval", dev) == 1
    assert "train: 3 x question that is answered too, refused: q21.9, q21.10, q21.11" in capsys.readouterr().err
    (place / "elsewhere").mkdir()
    s.written(place / "elsewhere" / "xquad.de.json", {"data": whole["data"][:5]})
    words = ["--checkpoint", place / "plain" / "checkpoint.pt", "--train", train, "--eval", dev, "--length", 24]
    output = s.prepared(place / "left", *words, "--bad", "skip", "--limit", 3, "--without", f"xquad={place}/elsewhere")
    assert [entry.id for entry in spans.questions(output, "train")] == ["q21.5", "q21.6", "q21.7"]
    assert spans.record(output)["problems"]["question scored elsewhere"] == {"left out": 5}
    s.written(place / "elsewhere" / "xquad.de.json", whole)
    assert run(place, "--eval", dev, "--without", f"xquad={place}/elsewhere") == 1
    assert "valid: all 3 questions are left out, because --without names a set" in capsys.readouterr().err


def test_windows_without_room_for_a_context_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(place, "--train", s.written(place / "few.json", s.squad(3, 5)), "--length", 8) == 1
    assert "leaves no room for a context" in capsys.readouterr().err


def test_answers_that_no_window_holds_are_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = s.squad(3, 6)
    part = content["data"][0]["paragraphs"][0]
    part["qas"][0]["answers"] = [{"text": part["context"], "answer_start": 0}]
    part["qas"][0]["question"] = "what what what what what?"
    file, source = s.written(place / "wide.json", content), place / "plain" / "checkpoint.pt"
    for flag, done in (("--train", "learned as no answer"), ("--eval", "scored, never found")):
        output = s.prepared(place / f"wide{flag}", "--checkpoint", source, flag, file, "--length", 18)
        printed = capsys.readouterr().out
        assert f"1 x answer in no window, {done}: q6.0" in printed
        assert "1 x cut question, cut: q6.0" in printed
    assert spans.questions(output, "valid")[0].pieces == 0
