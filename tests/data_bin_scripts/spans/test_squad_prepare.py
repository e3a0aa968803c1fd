"""Test prepare_spans.py: the windows of questions, and questions with problems."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("fairseq")

import support_squad as s
from integration import support
from questions import reading

from fairseq_posenc.data import spans
from recipes.lib.finetuning.questions import answers

DEV = s.squad(40, 2)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("squad")
    s.checkpoint(folder / "plain")
    return folder


@pytest.fixture(scope="module")
def data(place: Path) -> Path:
    return s.toy(place, DEV)


# --- what is prepared


def test_windows_are_of_the_questions(data: Path) -> None:
    record = spans.record(data)
    assert record["splits"]["train"]["answers given back"] == 300
    assert record["splits"]["valid"]["in several windows"] == 0
    questions, texts, rows = spans.questions(data, "valid"), spans.contexts(data, "valid"), spans.rows(data, "valid")
    assert {question.id: question.answers for question in questions} == s.texts(DEV)
    for question, row in zip(questions, rows, strict=True):
        first, last = row.start - row.column, row.end - row.column
        offsets = texts[question.context].offsets
        assert texts[question.context].text[offsets[first][0] : offsets[last][1]] == question.answers[0]


def test_batches_have_what_the_loss_wants(data: Path, place: Path) -> None:
    _, task = s.built(data, place / "plain" / "checkpoint.pt")
    (batch,) = support.batches(task, "valid", longest=24)
    tokens = batch["net_input"]["src_tokens"]
    assert tokens[:, :5].tolist() == [[0, 4, 5, 2, 2]] * 40  # <s> what ? </s> </s>
    assert batch["ntokens"] == int(tokens.ne(1).sum())
    ends = [tokens[number, batch[name][number]] for name in ("start", "end") for number in range(40)]
    assert [task.dictionary[token] for token in ends] == ["("] * 40 + [")"] * 40
    assert task.max_positions() == 24


def test_long_contexts_and_questions_without_answer(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, file = place / "plain" / "checkpoint.pt", s.written(place / "long.json", s.squad(9, 3, 40, without=True))
    options = ["--version", "2.0", "--longest", 20, "--stride", 5, "--longest-question", 2, "--separators", 1]
    output = s.prepared(place / "long", "--checkpoint", source, "--train", file, *options)
    counts = spans.record(output)["splits"]["train"]
    assert (counts["in several windows"], counts["without answer"]) == (9, 3)
    printed = capsys.readouterr().out
    assert "9 of 9 questions in" in printed
    assert "for 6 of 6 answers, the span" in printed
    rows = spans.rows(output, "train")
    assert {row.question for row in rows if row.start} == {0, 1, 3, 4, 6, 7}
    assert {row.column for row in rows} == {4}


def test_a_lone_file_is_split_by_article(place: Path) -> None:
    source, file = place / "plain" / "checkpoint.pt", s.written(place / "lone.json", s.squad(30, 8))
    output = s.prepared(place / "lone", "--checkpoint", source, "--text", file, "--seed", 2, "--limit", 20)
    ids = {split: {question.id for question in spans.questions(output, split)} for split in ("train", "valid")}
    assert [len(split_ids) for split_ids in ids.values()] == [20, 6]
    assert not ids["train"] & ids["valid"]
    assert spans.record(output)["files"]["all"]["name"] == "lone.json"


def test_a_folder_has_its_splits_by_their_names(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Read the files of the chosen version from a folder, plain or .gz."""
    folder, source = place / "mine", place / "plain" / "checkpoint.pt"
    folder.mkdir()
    s.written(folder / "train.json", s.squad(9, 13))
    (folder / "dev-v1.1.json.gz").write_bytes(gzip.compress(json.dumps(s.squad(5, 14)).encode()))
    s.written(folder / "dev-v2.0.json", s.squad(7, 15, without=True))
    options = ["--checkpoint", source, "--text", folder]
    output = s.prepared(place / "folder", *options)
    assert {split: len(spans.questions(output, split)) for split in ("train", "valid")} == {"train": 9, "valid": 5}
    output = s.prepared(place / "folder2", *options, "--version", "2.0")
    assert len(spans.questions(output, "valid")) == 7
    assert spans.record(output)["files"]["valid"]["name"] == "dev-v2.0.json"
    s.written(folder / "dev.json", s.squad(5, 14))
    words = ["--tokenizer-path", "words", *map(str, options), "--output", str(place / "no")]
    capsys.readouterr()
    assert s.prepare_spans.main(words) == 1
    assert (
        "both dev.json and dev-v1.1.json for valid. Give the files with --train and --eval" in capsys.readouterr().err
    )
    with pytest.raises(SystemExit):
        s.prepare_spans.main([*words, "--seed", "2"])
    assert "--seed has an effect only" in capsys.readouterr().err


# --- what is refused


def refused(place: Path, capsys: pytest.CaptureFixture[str], content: Any, *more: object) -> str:
    file = place / "bad.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    options = ["--checkpoint", place / "plain" / "checkpoint.pt", "--train", file, *more]
    words = ["--tokenizer-path", "words", "--longest-question", "4", *map(str, options), "--output", str(place / "no")]
    assert s.prepare_spans.main(words) == 1
    return capsys.readouterr().err


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


def renamed(content: dict[str, Any]) -> dict[str, Any]:
    """Return the same questions with other ids: d4.0 for q4.0."""
    return cast(dict[str, Any], json.loads(json.dumps(content).replace('"id": "q', '"id": "d')))


def test_what_is_wrong_is_counted_and_named(data: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(place, capsys, bad(), "--longest", 16, "--stride", 2)
    assert "long context" not in error  # a long context is not refused
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
    assert any("'answer_start' is None, but must be a number" in line["what"] for line in lines)


@pytest.mark.parametrize(("how", "left"), [("skip", 2), ("repair", 3)])
def test_what_is_wrong_is_left_out_or_mended(data: Path, place: Path, how: str, left: int) -> None:
    """Evaluation splits leave out only the questions that cannot be read."""
    file = s.written(place / "bad.json", bad())
    other = s.written(place / "bad-dev.json", renamed(bad()))
    source = place / "plain" / "checkpoint.pt"
    options = ["--checkpoint", source, "--train", file, "--eval", other, "--bad", how, "--longest", 24]
    output = s.prepared(place / how, *options)
    counts = spans.record(output)["splits"]
    assert (counts["train"]["given"], counts["train"]["questions"], counts["valid"]["questions"]) == (5, left, 5)
    assert [question.id for question in spans.questions(output, "valid")] == ["d4.0", "d4.1", "d4.2", "d4.4", "d4.7"]
    assert spans.record(output)["problems"]["empty context"] == {"left out": 1, "scored as it is": 1}


def test_what_is_answered_is_not_trained_on(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Refuse the same file for training and evaluation, and questions in both unless training leaves them out."""
    whole, dev = s.squad(12, 21), s.written(place / "dev21.json", {"data": s.squad(12, 21)["data"][9:]})
    train, copied = s.written(place / "train21.json", whole), s.written(place / "copied21.json", whole)
    words = ["--checkpoint", place / "plain" / "checkpoint.pt", "--train", train, "--longest", 24]
    tokenizer = ("--tokenizer-path", "words", "--longest-question", "4", "--output", str(place / "both"))
    for flag in ([str(train)], [f"de={train}"]):
        with pytest.raises(SystemExit) as status:
            s.prepare_spans.main([*map(str, words), "--eval", *flag, *tokenizer])
        assert status.value.code == 2
    assert f"--train and de are the same file, {train}" in capsys.readouterr().err
    assert s.prepare_spans.main([*map(str, words), "--eval", str(dev), *tokenizer]) == 1
    message = "train: 3 x question that is answered too, refused: q21.9, q21.10, q21.11"
    assert message in capsys.readouterr().err
    output = s.prepared(place / "left", *words, "--eval", dev, "--bad", "skip", "--limit", 10)
    assert [len(spans.questions(output, split)) for split in ("train", "valid")] == [9, 3]
    assert spans.record(output)["problems"]["question that is answered too"] == {"left out": 3}
    assert s.prepare_spans.main([*map(str, words), "--eval", str(copied), "--bad", "skip", *tokenizer]) == 1
    assert "train: all 12 questions are also in valid" in capsys.readouterr().err


def test_files_that_cannot_be_read_are_refused(place: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "bad.json: the file is not valid JSON" in refused(place, capsys, "{")
    assert "the file has no list 'data', which SQuAD's format requires" in refused(place, capsys, {})
    error = refused(place, capsys, s.squad(3, 5, without=True))
    assert "1 questions have no answer (q5.2). Give --version 2.0" in error
    error = refused(place, capsys, s.squad(3, 5), "--version", "2.0")
    assert "bad.json: every question has an answer. Give --version 1.1" in error
    lone = ["--tokenizer-path", "words", "--checkpoint", place / "plain" / "checkpoint.pt", "--output", place / "no"]
    for path, message in (
        (
            s.written(place / "two.json", s.squad(2, 5)),
            "splitting needs 3 or more articles, but the file has 2. Give a file for each split with --train and",
        ),
        (place / "nope", f"{place / 'nope'}: no such file or folder"),
        (s.written(place / "src-x.txt", {}), "src-x.txt: give NAME.json in SQuAD's format, plain or .gz"),
    ):
        assert s.prepare_spans.main([*map(str, lone), "--text", str(path)]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert "--valid" not in error
    assert "leaves no room for a context" in refused(place, capsys, s.squad(3, 5), "--longest", 8)
    error = refused(place, capsys, s.squad(3, 5), "--tokenizer-path", "auto")
    assert "has no tokenizer/ beside it" in error
    assert "--tokenizer-path words, chars, spaces" in error


def test_an_answer_that_no_window_holds_is_told(data: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = s.squad(3, 6)
    part = content["data"][0]["paragraphs"][0]
    part["qas"][0]["answers"] = [{"text": part["context"], "answer_start": 0}]
    part["qas"][0]["question"] = "what what what what what?"
    file = s.written(place / "wide.json", content)
    output = s.prepared(
        place / "wide", "--checkpoint", place / "plain" / "checkpoint.pt", "--train", file, "--longest", 18
    )
    printed = capsys.readouterr().out
    assert "1 x answer in no window, learned as no answer: q6.0" in printed
    assert "1 x cut question, cut: q6.0" in printed
    assert spans.record(output)["problems"]["cut question"] == {"cut": 1}


def test_scored_answers_that_cannot_be_found_are_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer is out of reach if no window contains it or if it is too long; the shortest answer counts."""
    content = s.squad(4, 10)
    questions = [(part["context"], part["qas"][0]) for article in content["data"] for part in article["paragraphs"]]
    (whole, first), (text, second), _, (_, last) = questions
    first["answers"] = [{"text": whole, "answer_start": 0}]
    second["answers"] += [{"text": text, "answer_start": 0}, {"text": text[:5], "answer_start": 0}]
    last["answers"][0]["answer_start"] += 1  # the true offset is unknown
    file = s.written(place / "reach.json", content)
    source = place / "plain" / "checkpoint.pt"
    shape = ("--longest", 16, "--stride", 2)
    output = s.prepared(place / "reach", "--checkpoint", source, "--eval", file, *shape, "--bad", "skip")
    printed = capsys.readouterr().out
    assert "valid: 1 x answer in no window, scored, never found: q10.0" in printed
    assert "valid: 4 x long context, read in parts: q10.0, q10.1, q10.2, q10.3" in printed
    written = spans.questions(output, "valid")
    pieces = [question.pieces for question in written]
    assert (pieces[0], pieces[1], pieces[3]) == (0, min(3, len(second["answers"][0]["text"].split())), None)
    missed = answers.out_of_reach(written, 2)
    assert missed == {"in no window": ["q10.0"], "longer than 2 pieces": ["q10.1", "q10.2"]}


def test_what_is_scored_is_there_for_the_sets_own_scripts(place: Path) -> None:
    content = s.squad(9, 11, without=True)
    file, source = s.written(place / "own.json", content), place / "plain" / "checkpoint.pt"
    words = ["--version", "2.0", "--eval", file, "--limit-eval", 7, "--longest", 24]
    output = s.prepared(place / "own", "--checkpoint", source, *words)
    read, scored = (reading.read(path) for path in (file, output / "valid.scored.json"))
    assert [question._replace(where="", title="") for question in scored] == [
        question._replace(where="", title="") for question in read[:7]
    ]
    assert [question.impossible for question in scored] == 2 * [False, False, True] + [False]


def test_questions_that_are_scored_elsewhere_are_left_out(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Leave questions out by their ids, before --limit-eval takes the first ones."""
    whole = s.squad(12, 12)
    file, source = s.written(place / "dev12.json", whole), place / "plain" / "checkpoint.pt"
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    s.written(elsewhere / "xquad.de.json", {"data": whole["data"][:5]})
    s.written(elsewhere / "xquad.zh.json", {"data": whole["data"][4:6]})
    options = ["--checkpoint", source, "--eval", file, "--longest", 24, "--without", f"xquad={elsewhere}"]
    output = s.prepared(place / "apart", *options, "--limit-eval", 4)
    assert [entry.id for entry in spans.questions(output, "valid")] == [f"q12.{number}" for number in range(6, 10)]
    message = "valid: 6 x question scored elsewhere, left out: q12.0, q12.1, q12.2, q12.3, q12.4, ..."
    assert message in capsys.readouterr().out
    assert [entry["name"] for entry in spans.record(output)["without"]] == ["xquad.de.json", "xquad.zh.json"]
    output = s.prepared(place / "apart.zh", *options, "--languages", "zh,fi")
    assert len(spans.questions(output, "valid")) == 10
    s.written(elsewhere / "xquad.de.json", whole)
    shape = ["--tokenizer-path", "words", "--longest-question", "4"]
    words = [*map(str, options), *shape, "--output", str(place / "none")]
    assert s.prepare_spans.main(words) == 1
    assert "valid: --without leaves out all 12 questions" in capsys.readouterr().err
