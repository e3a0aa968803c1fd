"""Provide the tests of prepare_parallel.py with corpora in the formats of WMT's archives, and with runs.

PYTEST_DONT_REWRITE: it asserts nothing, and is imported before it is named as a plugin.
"""

from __future__ import annotations

import html
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import prepare_parallel
import pytest
from support_scripts import Runs

SYLLABLES = {"en": "the dog ran old tree of", "de": "der Hund lief alt Baum von", "cs": "pes běžel starý strom na ten"}
Lines = tuple[list[str], list[str]]


def sentences(number: int, seed: int, pair: tuple[str, str] = ("en", "de")) -> Lines:
    """Return different pairs of sentences with equal numbers of words on both sides."""
    drawn = random.Random(seed)
    sizes = [drawn.randint(3, 9) for _ in range(number)]
    source, target = (
        [
            " ".join(drawn.choices(SYLLABLES[code].split(), k=size)) + f" {seed}.{line}"
            for line, size in enumerate(sizes)
        ]
        for code in pair
    )
    return source, target


def sgm_text(documents: Sequence[Sequence[str]], kind: str = "srcset", names: Sequence[str] = ()) -> str:
    """Return documents in WMT's sgm format, with entities."""
    rows = [f'<{kind} setid="newstest2017" srclang="any">']
    for number, segments in enumerate(documents):
        name = names[number] if names else f"paper.{number}"
        rows += [f'<doc sysid="ref" docid="{name}" genre="news" origlang="cs">', "<p>"]
        rows += [f'<seg id="{place}">{html.escape(text)}</seg>' for place, text in enumerate(segments, start=1)]
        rows += ["</p>", "</doc>"]
    return "\n".join([*rows, f"</{kind}>", ""])


def sgm_pair(pairs: Lines) -> tuple[str, str]:
    """Return both sides in sgm format, in documents of five sentences."""
    documents = [[side[place : place + 5] for place in range(0, len(side), 5)] for side in pairs]
    return sgm_text(documents[0]), sgm_text(documents[1], "refset")


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


class Parallel(Runs):
    """Run prepare_parallel.py."""

    def write(self, name: str, a: Sequence[str | bytes], b: Sequence[str | bytes], pair: str = "en-de") -> Path:
        """Write NAME.A and NAME.B, and return their path without the endings."""
        for language, side in zip(pair.split("-"), (a, b), strict=True):
            path = self.folder / f"{name}.{language}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in side))
        return self.folder / name

    def words(self, *train: object) -> list[object]:
        """Write validation and test sets, and return the options of a run with these training corpora."""
        sets = {split: self.write(split, *sentences(4, seed)) for split, seed in (("valid", 90), ("test", 91))}
        options: list[object] = ["--pair", "en-de", "--train", *train]
        return [*options, "--valid", sets["valid"], "--test", sets["test"]]

    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.output / "corpus.json").read_text())
        return record

    def counts(self, corpus: str) -> dict[str, int]:
        """Return the counts of a training corpus by step."""
        rows = json.loads((self.output / "report.json").read_text())
        return {row["step"]: row["count"] for row in rows if (row["split"], row["corpus"]) == ("train", corpus)}


@pytest.fixture
def parallel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Parallel:
    return Parallel(prepare_parallel.main, tmp_path, capsys)
