"""Provide what the tests of questions share: questions, runs of prepare_questions.py, and items as fairseq reads them.

PYTEST_DONT_REWRITE: it is imported before it is named as a plugin.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import prepare_questions
import pytest
from support_scripts import DATA, Runs

needs_data = pytest.mark.skipif(not (DATA / "squad-v1.1").is_dir(), reason="POSENC_DATA names no folder with SQuAD")

CITY = "The old city of Zorn is on a hill. King Abel (of Zorn) built it in 1200. He had 3.5 towers."
LAKE = "Lake Ember is deep. Nobody swims in it."


def asked(name: str, text: str, *answers: tuple[str, int], **more: Any) -> dict[str, Any]:
    return {"id": name, "question": text, "answers": [{"text": a, "answer_start": s} for a, s in answers], **more}


def squad(*articles: list[tuple[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    data = [
        {"title": f"T{n}", "paragraphs": [{"context": context, "qas": qas} for context, qas in article]}
        for n, article in enumerate(articles)
    ]
    return {"version": "1.1", "data": data}


def good() -> dict[str, Any]:
    city = [
        asked("a", "Who built Zorn?", ("King Abel", CITY.index("King"))),
        asked("b", "Who was the builder?", ("King Abel", CITY.index("King"))),
        asked("c", "When was it built?", ("1200", CITY.index("1200")), ("in 1200", CITY.index("in 1200"))),
    ]
    return squad([(CITY, city)], [(LAKE, [asked("d", "Which lake is deep?", ("Lake Ember", 0))])])


class Prepared(Runs):
    """Run prepare_questions.py."""

    def both(self, train: Any = None, valid: Any = None) -> list[object]:
        files = (self.write("train.json", train or good()), self.write("valid.json", valid or good()))
        return ["--train", files[0], "--valid", files[1]]

    def made(self, *words: object, output: Path | None = None) -> Path:
        ended = self.run(*words, output=output)
        assert ended.status == 0, ended.error
        return output or self.output

    def record(self) -> dict[str, Any]:
        return json.loads((self.output / "questions.json").read_text("utf-8"))


@pytest.fixture
def prepared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Prepared:
    return Prepared(prepare_questions.main, tmp_path, capsys)


class Items(NamedTuple):
    """Read the items like fairseq; words that the dictionary lacks are marked with a star."""

    source: list[list[str]]
    target: list[list[str]]
    segments: list[list[int]] | None
    surface: list[dict[str, Any]]


def items(folder: Path, split: str = "train") -> Items:
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(folder / "dict.src.txt"))
    assert (folder / "dict.src.txt").read_bytes() == (folder / "dict.tgt.txt").read_bytes()
    lines = [json.loads(line) for line in (folder / f"{split}.surface.jsonl").read_text("utf-8").split("\n")[:-1]]

    def read(name: str) -> list[list[int]]:
        dataset = data_utils.load_indexed_dataset(str(folder / f"{split}.{name}"), dictionary, "mmap")
        assert len(dataset) == len(lines)
        return [dataset[number].tolist() for number in range(len(dataset))]

    def named(ids: Iterable[int], unknown: list[str]) -> list[str]:
        size = len(dictionary)
        return [dictionary[number] if number < size else f"{unknown[number - size]}*" for number in ids]

    sides = [
        [named(ids, line["unknown"]) for ids, line in zip(read(f"src-tgt.{side}"), lines, strict=True)]
        for side in ("src", "tgt")
    ]
    segments = read("segments") if (folder / f"{split}.segments.idx").exists() else None
    return Items(sides[0], sides[1], segments, lines)
