"""Test prepare_questions.py: items for question generation, questions with problems, and files that are refused."""

from __future__ import annotations

import argparse
import json
import random
from typing import Any

import prepared as shared
import pytest
from prepare_questions import Cutter, around, language_of
from question_files import Answer, Question
from support_prepared import CITY, LAKE, Prepared, asked, good, items, problems, squad
from support_scripts import hashes

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
    assert data.surface[0] == {
        "id": "a",
        "source": 0,
        "question": "Who built Zorn?",
        "references": ["Who built Zorn?", "Who was the builder?"],
        "answer": "King Abel",
        "sentence": "King Abel (of Zorn) built it in 1200.",
        "unknown": [],
    }
    assert [(line["id"], line["source"]) for line in data.surface] == [("a", 0), ("b", 0), ("c", 1), ("d", 2)]
    record = prepared.record()
    assert (record["pieces"], record["units"], record["answers"], record["round_trip"]) == ("words", "words", True, 1.0)
    other = prepared.made(*prepared.both(), "--context", "sentence", output=prepared.folder / "two")
    assert " ".join(items(other).source[2]) == "<s> 1200 </s> king abel ( of zorn ) built it in 1200 . </s>"
    assert around(CITY, 30, 40, "en") == (0, CITY.index(" He"))  # an answer in two sentences


def test_words_outside_the_dictionary_are_numbered_and_copied(prepared: Prepared) -> None:
    valid = squad([("Queen Mara of Lund met Tove and Mara.", [asked("v", "Who met Tove in Oslo?", ("Queen Mara", 0))])])
    data = items(prepared.made(*prepared.both(valid=valid), "--cased"), "valid")
    assert " ".join(data.source[0]) == "<s> Queen* Mara* </s> Queen* Mara* of Lund* met* Tove* and* Mara* . </s>"
    assert data.target[0] == "Who met* Tove* in <unk> ? </s>".split()
    assert data.surface[0]["unknown"] == ["Queen", "Mara", "Lund", "met", "Tove", "and"]
    facts = prepared.record()["splits"]["valid"]
    assert (facts["source unknown"], facts["target copied"], facts["target unknown"]) == (9, 2, 1)
    small = prepared.made(*prepared.both(), "--vocabulary", 8, output=prepared.folder / "two")
    assert [line.split()[0] for line in (small / "dict.src.txt").read_text().splitlines()] == [
        ".",
        "zorn",
        "of",
        "abel",
    ]


def test_chinese_is_cut_by_characters_with_latin_words_whole(prepared: Prepared) -> None:
    context = "魂斗罗 Force是1993年发行的游戏。它很难。"
    questions = squad([(context, [asked("a", "魂斗罗 Force是哪一年的？", ("1993年", context.index("1993")))])])
    data = items(prepared.made(*prepared.both(questions, questions)))
    assert data.source[0][:10] == ["<s>", "1993", "年", "</s>", "魂", "斗", "罗", "force", "是", "1993"]
    assert data.surface[0]["sentence"] == "魂斗罗 Force是1993年发行的游戏。"
    record = prepared.record()
    assert (record["language"], record["pieces"], record["units"]) == ("zh", "chars", "characters")
    assert language_of(["什么是NBA？"]) == "zh"


@pytest.mark.parametrize("seed", range(30))
def test_a_window_holds_the_answer_and_as_much_as_there_is_room_for(seed: int) -> None:
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(rng.randint(1, 60))]
    context, first = " ".join(words), rng.randrange(len(words))
    text = " ".join(words[first : first + rng.randint(1, 8)])
    question = Question("a", "x", 0, context, "what?", (Answer(text, context.index(text)),))
    longest = rng.randint(14, 70)
    limits = {"length": longest, "longest_answer": 8, "longest_question": 50, "context": "paragraph", "bad": "refuse"}
    cutter = Cutter(question_pieces.Words("words", cased=True), argparse.Namespace(**limits), "en")
    cut, found = cutter.cut("train", question)
    assert cut is not None
    assert not found
    size = len(cut.context) + len(text.split()) + 3
    assert size == min(longest, len(words) + len(text.split()) + 3)
    assert cut.windowed == (len(cut.context) < len(words))
    assert text in " ".join(cut.context) or len(text.split()) > len(cut.context)
    begin = words.index(cut.context[0])
    before, after = first - begin, begin + len(cut.context) - first - len(text.split())
    assert not begin or cut.context[-1] == words[-1] or after - before in (0, -1)  # in the middle
    assert " ".join(cut.context) in context


def test_lines_of_sentences_and_questions(prepared: Prepared) -> None:
    for split in ("train", "dev"):
        prepared.write(f"nqg/src-{split}.txt.gz", "the king -lrb- abel -rrb- won .\nthe king -lrb- abel -rrb- won .\n")
        prepared.write(f"nqg/tgt-{split}.txt.gz", "who won ?\nwhat did he do ?\n")
    data = items(prepared.made("--corpus", prepared.folder / "nqg", "--context", "sentence"), "valid")
    assert data.source == ["<s> the king -lrb- abel -rrb- won . </s>".split()] * 2
    assert data.segments is None
    assert data.target[1] == "what did he do ? </s>".split()
    assert [line["references"] for line in data.surface] == [["who won ?", "what did he do ?"]] * 2
    assert [line["id"] for line in data.surface] == ["dev:1", "dev:2"]


def test_a_lone_file_is_split_by_article(prepared: Prepared) -> None:
    questions = [[asked(f"{n}.{m}", f"Is it lake {n}?", ("Lake Ember", 0)) for m in range(3)] for n in range(20)]
    path = prepared.write("mine.json", squad(*[[(LAKE, entries)] for entries in questions]))
    folder = prepared.made("--corpus", path)
    ids = {split: [line["id"] for line in items(folder, split).surface] for split in ("train", "valid", "test")}
    assert {split: len(names) for split, names in ids.items()} == {"train": 48, "valid": 6, "test": 6}
    assert sum(len({name.split(".")[0] for name in names}) for names in ids.values()) == 20
    other = prepared.made("--corpus", path, "--seed", 2, "--limit-valid", 4, output=prepared.folder / "two")
    assert len(items(other, "valid").surface) == 4
    assert {line["id"] for line in items(other, "test").surface} != set(ids["test"])


def test_all_questions_of_a_sentence_are_in_one_split(prepared: Prepared) -> None:
    path = prepared.write("src-mine.txt", "".join(f"lake {number} is deep .\n" * 3 for number in range(20)))
    prepared.write("tgt-mine.txt", "which lake is deep ?\n" * 60)
    folder = prepared.made("--corpus", path)
    texts = [{" ".join(source) for source in items(folder, split).source} for split in ("train", "valid", "test")]
    assert sum(map(len, texts)) == 20


# --- what is wrong


def bad() -> dict[str, Any]:
    start = CITY.index("1200")
    entries = [
        asked("fine", "Who?", ("King Abel", CITY.index("King"))),
        asked("moved", "Where?", ("Zorn", CITY.rindex("Zorn") - 4)),  # the second occurrence is nearer
        asked("second", "When?", ("1201", start), ("1200", start)),
        asked("nowhere", "Why?", ("Berlin", 3)),
        asked("none", "What?"),
        asked("empty", " ", ("1200", start)),
        asked("no answer text", "Who is it?", (" ", 3)),
        asked("long", "Who " * 60, ("King Abel", CITY.index("King"))),
        asked("long answer", "What?", (CITY[:80], 0)),
        asked("impossible", "Who knows?", is_impossible=True),
        {"id": "malformed", "question": 3},
    ]
    return squad([(CITY, entries), (" ", [asked("no context", "Who?", ("a", 0))])])


def test_bad_questions_are_named_and_refused_left_out_or_repaired(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*prepared.both(bad()), "--longest-answer", 15]
    ended = prepared.run(*words)
    assert ended.status == 1
    assert "train: 3 x misplaced answer, refused: moved, second, nowhere" in ended.error
    listed = problems(prepared.folder / "out.problems.jsonl")
    assert {problem["where"] for problem in listed if problem["id"] == "moved"} == {
        "train.json: article 1, paragraph 1 (T0)"
    }
    assert sorted(path.name for path in prepared.folder.iterdir()) == ["out.problems.jsonl", "train.json", "valid.json"]
    assert [line["id"] for line in items(prepared.made(*words, "--bad", "skip")).surface] == ["fine", "second"]
    assert not (prepared.folder / "out.problems.jsonl").exists()  # the refused run wrote it
    monkeypatch.setattr(shared, "CHUNK", 2)
    folders = [prepared.folder / name for name in ("two", "three")]
    for workers, folder in enumerate(folders, 1):
        prepared.made(*words, "--bad", "repair", "--workers", workers, output=folder)
    assert hashes(folders[0]) == hashes(folders[1])
    kept = items(folders[0])
    assert [line["id"] for line in kept.surface] == ["fine", "moved", "second", "long", "long answer"]
    assert kept.surface[1]["sentence"].startswith("King Abel (of Zorn)")  # the nearest occurrence
    assert (len(kept.target[3]), kept.surface[3]["question"]) == (51, "Who " * 60)
    facts = json.loads((folders[0] / "questions.json").read_text())["problems"]
    assert facts.pop("misplaced answer") == {"left out": 2, "repaired": 1}
    assert [facts.pop(f"long {name}") for name in ("answer", "question")] == [{"repaired": 1}] * 2
    kinds = {"malformed question": 1, "no answer": 3, "unanswerable": 1}
    kinds |= {"empty question": 1, "empty answer": 1, "empty context": 1}
    assert facts == {kind: {"left out": number} for kind, number in kinds.items()}


def test_damaged_and_existing_files_are_named(prepared: Prepared) -> None:
    path = prepared.write("train.json.gz", good())
    path.write_bytes(path.read_bytes()[:-20])
    assert "train.json.gz: the file is damaged or incomplete" in prepared.run("--train", path, "--valid", path).error
    prepared.output.mkdir()
    assert f"{prepared.output} exists. Move it" in prepared.run(*prepared.both()).error
