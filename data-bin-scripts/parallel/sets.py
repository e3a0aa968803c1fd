"""Write validation and test sets without changing a word; a test set also keeps all its lines."""

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
    where: tuple[int, int]  # line numbers in the two files
    texts: tuple[str, str]


def pairs(source: Source) -> Iterator[Pair]:
    """Yield the pairs of a set with single spaces, like sacreBLEU.

    Raises:
        CorpusError: A file cannot be read, or the files do not fit each other.
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
    """Return the line with single spaces, and without the byte order mark that may begin a file."""
    return " ".join((line.text.removeprefix("\ufeff") if line.number == 1 else line.text).split())


def unequal(files: tuple[Path, Path], line: int, first: bool) -> CorpusError:
    """Return an error for two files of different length.

    Args:
        line: First line that one of the files lacks.
        first: The first file is the shorter one.
    """
    short, long = files if first else files[::-1]
    return CorpusError(
        f"{short} ends after line {line - 1}, {long} goes on at line {line}: every line of one translates the line of "
        "the same number of the other; fetch them again"
    )


def write(sources: list[Source], targets: tuple[Path, Path]) -> list[dict[str, object]]:
    """Write the concatenated sets of a split.

    Returns:
        For each set its name, the number of pairs, and the number of pairs with an empty side, which are left out of
        validation sets.
    Raises:
        CorpusError: A test set has an empty side, or a set has no pair.
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
