"""Test prepare_questions.py with long contexts and with files that it splits."""

from __future__ import annotations

import argparse
import random

import pytest
from prepare_questions import Cutter
from question_files import Answer, Question
from support_prepared import LAKE, Prepared, asked, items, squad

from fairseq_posenc.data import question_pieces

pytest_plugins = ["support_prepared"]


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
