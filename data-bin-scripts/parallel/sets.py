"""Write validation and test sets with the same normalisation as the training text; a test set keeps all its lines."""

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
    """Yield the pairs of a set. Their text is cleaned like training text, because models know no other characters.

    Raises:
        CorpusError: A file cannot be read, or the two files do not match.
    """
    kinds = {sgm.is_sgm(path) for path in source.files}
    if kinds == {True}:
        for segment, translation in sgm.pairs(*source.files):
            yield Pair((segment.line, translation.line), (lines.tidy(segment.text), lines.tidy(translation.text)))
        return
    for number, (first, second) in enumerate(zip_longest(*map(lines.of_file, source.files)), start=1):
        if first is None or second is None:
            raise unequal(source.files, number, first is None)
        yield Pair((number, number), (lines.tidy(first.text), lines.tidy(second.text)))


def unequal(files: tuple[Path, Path], line: int, first: bool) -> CorpusError:
    """Return an error for two files of different length.

    Args:
        line: Number of the first line that one of the files lacks.
        first: Whether the first file is the shorter one.
    """
    short, long = files if first else files[::-1]
    return CorpusError(
        f"{short} ends after line {line - 1}, but {long} continues with line {line}. Each line must translate the line "
        "with the same number in the other file. Fetch both files again."
    )


def write(sources: list[Source], targets: tuple[Path, Path]) -> list[dict[str, object]]:
    """Write the concatenated sets of a split.

    Returns:
        The name of each set, its number of pairs, and the number of its pairs that were left out because a side is
        empty (only in validation sets).
    Raises:
        CorpusError: A side of a test pair is empty, or a set has no pairs.
    """
    counts: list[dict[str, object]] = []
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
                raise CorpusError(f"{source.files[0]}: the set has no pair with text on both sides. Give another set.")
            counts.append({"name": source.name, "pairs": kept, "empty": empty})
    return counts


def _refuse_in_test(source: Source, pair: Pair) -> None:
    if source.split == "test":
        side = 1 if lines.is_seen(pair.texts[0]) else 0
        what = "the line is empty, but a test set must keep all lines. Fetch the file again, or add the missing text."
        raise CorpusError.at(source.files[side], pair.where[side], what)
