"""Test prepare_questions.py, which converts questions to files that fairseq reads."""

from __future__ import annotations

import random
from typing import Any

import pytest
from questions.items import Cutter, Shape
from questions.reading import Answer, Question
from questions.sentences import around, language_of
from support_prepared import CITY, LAKE, Prepared, asked, good, items, squad

from fairseq_posenc.data import question_pieces

pytest_plugins = ["support_prepared"]


# --- items


def test_questions_become_answer_context_and_question(prepared: Prepared) -> None:
    data = items(prepared.made(*prepared.both()))
    assert " ".join(data.source[0]) == (
        "<s> king abel </s> the old city of zorn is on a hill . king abel ( of zorn ) built it in 1200 . "
        "he had 3.5 towers . </s>"
    )
    assert data.target[0] == "who built zorn ? </s>".split()
    assert data.segments is not None
    assert data.segments[0] == [0] * 4 + [1] * (len(data.source[0]) - 4)
    assert [line["id"] for line in data.surface] == ["a", "b", "c", "d"]
    assert data.surface[0] == {
        "id": "a",
        "source": 0,
        "question": "Who built Zorn?",
        "references": ["Who built Zorn?", "Who was the builder?"],
        "answer": "King Abel",
        "sentence": "King Abel (of Zorn) built it in 1200.",
        "unknown": [],
    }
    assert [line["source"] for line in data.surface] == [0, 0, 1, 2]
    record = prepared.record()
    assert (record["pieces"], record["units"], record["answers"], record["round_trip"]) == ("words", "words", True, 1.0)
    assert (
        record["splits"]["train"] | {"items": 4, "sources": 3, "given": 4, "windowed": 0} == record["splits"]["train"]
    )


def test_what_the_model_sees_is_the_source(prepared: Prepared) -> None:
    """An answer that occurs twice gives one source with whole contexts, but two sources with sentences."""
    context = "Abel came. Then Abel went away."
    offsets = {"a": 0, "b": context.rindex("Abel")}
    questions = squad([(context, [asked(name, f"Who is {name}?", ("Abel", at)) for name, at in offsets.items()])])
    whole = items(prepared.made(*prepared.both(questions, questions))).surface
    assert [line["source"] for line in whole] == [0, 0]
    assert whole[0]["references"] == whole[1]["references"] == ["Who is a?", "Who is b?"]
    assert prepared.record()["splits"]["train"]["sources"] == 1
    parts = prepared.made(*prepared.both(questions, questions), "--context", "sentence", output=prepared.folder / "two")
    assert [line["references"] for line in items(parts).surface] == [["Who is a?"], ["Who is b?"]]


def test_words_outside_the_dictionary_are_numbered_and_copied(prepared: Prepared) -> None:
    valid = squad([("Queen Mara of Lund met Tove and Mara.", [asked("v", "Who met Tove in Oslo?", ("Queen Mara", 0))])])
    folder = prepared.made(*prepared.both(valid=valid), "--cased")
    data = items(folder, "valid")
    assert " ".join(data.source[0]) == "<s> Queen* Mara* </s> Queen* Mara* of Lund* met* Tove* and* Mara* . </s>"
    assert data.target[0] == "Who met* Tove* in <unk> ? </s>".split()
    assert data.surface[0]["unknown"] == ["Queen", "Mara", "Lund", "met", "Tove", "and"]
    facts = prepared.record()["splits"]["valid"]
    assert (facts["source unknown"], facts["target copied"], facts["target unknown"]) == (9, 2, 1)


def test_the_dictionary_has_the_most_frequent_words(prepared: Prepared) -> None:
    folder = prepared.made(*prepared.both(), "--vocabulary", 8)
    assert [line.split()[0] for line in (folder / "dict.src.txt").read_text().splitlines()] == [
        ".",
        "zorn",
        "of",
        "abel",
    ]
    assert "the*" in items(folder).source[0]


def test_chinese_is_cut_by_characters_with_latin_words_whole(prepared: Prepared) -> None:
    context = "魂斗罗 Force是1993年发行的游戏。它很难。"
    questions = squad([(context, [asked("a", "魂斗罗 Force是哪一年的？", ("1993年", context.index("1993")))])])
    data = items(prepared.made(*prepared.both(questions, questions)))
    assert data.source[0][:4] == ["<s>", "1993", "年", "</s>"]
    assert data.source[0][4:10] == ["魂", "斗", "罗", "Force".lower(), "是", "1993"]
    assert data.surface[0]["sentence"] == "魂斗罗 Force是1993年发行的游戏。"
    record = prepared.record()
    assert (record["language"], record["pieces"], record["units"]) == ("zh", "chars", "characters")


def test_the_sentence_of_the_answer_alone(prepared: Prepared) -> None:
    data = items(prepared.made(*prepared.both(), "--context", "sentence"))
    assert " ".join(data.source[2]) == "<s> 1200 </s> king abel ( of zorn ) built it in 1200 . </s>"
    # The answer begins in one sentence and ends in the next.
    assert around(CITY, 30, 40, "en") == (0, CITY.index(" He"))
    assert around("no end", 3, 6, "en") == (0, 6)
    assert language_of(["什么是NBA？"]) == "zh"


@pytest.mark.parametrize("seed", range(30))
def test_a_window_holds_the_answer_and_as_much_as_there_is_room_for(seed: int) -> None:
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(rng.randint(1, 60))]
    context, first = " ".join(words), rng.randrange(len(words))
    text = " ".join(words[first : first + rng.randint(1, 8)])
    question = Question("a", "x", 0, "", context, "what?", (Answer(text, context.index(text)),))
    longest = rng.randint(14, 70)
    cutter = Cutter(question_pieces.Words("words", cased=True), Shape(longest, 8, 50, "paragraph", "en", "refuse"))
    cut, problems = cutter.cut("train", question)
    assert cut is not None
    assert not problems
    size = len(cut.context) + len(text.split()) + 3
    assert size == min(longest, len(words) + len(text.split()) + 3)
    assert cut.windowed == (len(cut.context) < len(words))
    if len(text.split()) <= len(cut.context):
        assert text in " ".join(cut.context)
    assert " ".join(cut.context) in context


# --- sentences and questions


def test_lines_of_sentences_and_questions(prepared: Prepared) -> None:
    for split in ("train", "dev"):
        prepared.write(f"nqg/src-{split}.txt.gz", "the king -lrb- abel -rrb- won .\nthe king -lrb- abel -rrb- won .\n")
        prepared.write(f"nqg/tgt-{split}.txt.gz", "who won ?\nwhat did he do ?\n")
    folder = prepared.made("--text", prepared.folder / "nqg")
    data = items(folder, "valid")
    assert data.source == ["<s> the king -lrb- abel -rrb- won . </s>".split()] * 2
    assert data.segments is None
    assert data.target[1] == "what did he do ? </s>".split()
    assert [line["references"] for line in data.surface] == [["who won ?", "what did he do ?"]] * 2
    assert [line["id"] for line in data.surface] == ["dev:1", "dev:2"]
    assert (prepared.record()["units"], prepared.record()["round_trip"]) == ("spaces", 1.0)


@pytest.mark.parametrize(
    ("write", "words", "message"),
    [
        ({"src-train.txt": "a\nb\n", "tgt-train.txt": "c\n"}, [], "src-train.txt has 2 lines, "),
        ({"src-train.txt": "a\n"}, [], "tgt-train.txt: no such file. src-NAME.txt and tgt-NAME.txt must both exist"),
        ({"train.json": "{"}, [], "train.json: the file is not valid JSON"),
        ({"train.json": "{}"}, [], "train.json: the file has no list 'data'"),
        ({"train.json": {"data": [{"title": "x"}]}}, [], "train.json: article 1 has no list 'paragraphs'"),
        ({"train.json": squad([("a", [{"id": "q", "question": 3}])])}, [], "paragraph 1 (T0), question q has no text"),
        ({"train.json": squad([("a", [asked("q", "b?", ("a", "0"))])])}, [], "question q: 'answer_start' is '0'"),  # type: ignore[arg-type]
        ({"train.json": {"data": []}}, [], "train.json: the file has no questions"),
        ({"train.json": good(), "src-train.txt": ""}, [], "has both train.json and src-train.txt for train"),
        (
            {"notes.txt": "x"},
            [],
            "no file for train (train.json, src-train.txt, plain or .gz); it holds dev.json, notes.t",
        ),
        ({"train.json": good()}, ["--text", "no-such"], "no-such: no such file or folder"),
        ({"train.json": good()}, ["--tokenizer-path", "no-such"], "--tokenizer-path no-such: no-such is not a folder"),
    ],
)
def test_files_that_cannot_be_read_are_refused_with_the_place(
    prepared: Prepared, write: dict[str, Any], words: list[str], message: str
) -> None:
    for name, content in {"dev.json": good(), **write}.items():
        prepared.write(f"text/{name}", content)
    if "src-train.txt" in write and "train.json" not in write:
        (prepared.folder / "text" / "dev.json").unlink()
        prepared.write("text/src-dev.txt", "a\n")
        prepared.write("text/tgt-dev.txt", "a\n")
    ended = prepared.run("--text", prepared.folder / "text", *words)
    assert ended.status == 1
    assert message in ended.error
    assert sorted(path.name for path in prepared.folder.iterdir()) == ["text"]


def test_damaged_files_are_named(prepared: Prepared) -> None:
    path = prepared.write("train.json.gz", good())
    path.write_bytes(path.read_bytes()[:-20])
    ended = prepared.run("--train", path, "--valid", path)
    assert ended.status == 1
    assert "train.json.gz: the file is damaged or incomplete" in ended.error


# --- a single file


def test_a_lone_file_is_split_by_article(prepared: Prepared) -> None:
    articles = [
        [(LAKE, [asked(f"{n}.{m}", f"Is it lake {n}?", ("Lake Ember", 0)) for m in range(3)])] for n in range(20)
    ]
    path = prepared.write("mine.json", squad(*articles))
    ended = prepared.run("--text", path)
    assert ended.status == 0, ended.error
    ids_by_split = {
        split: [line["id"] for line in items(prepared.output, split).surface] for split in ("train", "valid", "test")
    }
    assert {split: len(ids) for split, ids in ids_by_split.items()} == {"train": 48, "valid": 6, "test": 6}
    parts = [{name.split(".")[0] for name in ids} for ids in ids_by_split.values()]
    assert sum(map(len, parts)) == 20
    drawn = prepared.record()["articles"]
    assert f"test: 2 articles (seed 1): {', '.join(drawn['test'])}" in ended.out
    assert drawn["test"] == [f"T{number}" for number in sorted(map(int, parts[2]))]
    prepared.made("--text", path, "--seed", 2, output=prepared.folder / "two")
    assert {line["id"] for line in items(prepared.folder / "two", "test").surface} != set(ids_by_split["test"])


def test_two_articles_cannot_be_split(prepared: Prepared) -> None:
    ended = prepared.run("--text", prepared.write("mine.json", good()))
    assert ended.status == 1
    assert "splitting needs 3 or more articles, but the file has 2" in ended.error
