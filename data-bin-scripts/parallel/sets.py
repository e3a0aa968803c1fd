"""Sets of validation and test as they are: nothing is left out of a test set, and no word is changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from corpora import lines
from corpora.errors import CorpusError

from . import sgm
from .sources import Source


class Pair(NamedTuple):
    where: tuple[int, int]  # the lines of the files
    texts: tuple[str, str]


def pairs(source: Source) -> Iterator[Pair]:
    """With single spaces, as sacreBLEU has them.

    Raises:
        CorpusError: what cannot be read, or files that do not fit each other.
    """
    kinds = {sgm.is_sgm(path) for path in source.files}
    if kinds == {True}:
        for here, there in sgm.pairs(*source.files):
            yield Pair((here.line, there.line), (here.text, there.text))
        return
    for number, (first, second) in enumerate(zip_longest(*map(lines.of_file, source.files)), start=1):
        if first is None or second is None:
            raise unequal(source.files, number, first is None)
        yield Pair((number, number), (_spaced(first), _spaced(second)))


def _spaced(line: lines.Line) -> str:
    """Without the byte order mark of a file."""
    return " ".join((line.text.removeprefix("\ufeff") if line.number == 1 else line.text).split())


def unequal(files: tuple[Path, Path], line: int, first: bool) -> CorpusError:
    """Of files one of which has no such line."""
    short, long = files if first else files[::-1]
    return CorpusError(
        f"{short} ends after line {line - 1}, {long} goes on at line {line}: every line of one translates the line of "
        "the same number of the other; fetch them again"
    )


def write(sources: list[Source], targets: tuple[Path, Path]) -> list[dict[str, object]]:
    """The sets of a split, one behind the other.

    Returns:
        name, pairs and empty (pairs with an empty side, which validation does without) of each.
    Raises:
        CorpusError: an empty side in a test set, or a set without a pair.
    """
    found: list[dict[str, object]] = []
    with (
        targets[0].open("w", encoding="utf-8", newline="\n") as a,
        targets[1].open("w", encoding="utf-8", newline="\n") as b,
    ):
        for source in sources:
            kept = empty = 0
            for pair in pairs(source):
                if not all(map(lines.is_seen, pair.texts)):
                    _refuse_in_test(source, pair)
                    empty += 1
                    continue
                a.write(pair.texts[0] + "\n")
                b.write(pair.texts[1] + "\n")
                kept += 1
            if not kept:
                raise CorpusError(f"{source.files[0]}: no pair in it: give a set with sentences")
            found.append({"name": source.name, "pairs": kept, "empty": empty})
    return found


def _refuse_in_test(source: Source, pair: Pair) -> None:
    if source.split == "test":
        side = 1 if lines.is_seen(pair.texts[0]) else 0
        raise CorpusError.at(
            source.files[side], pair.where[side], "empty, and a test set is not shortened: fetch it again, or mend it"
        )
