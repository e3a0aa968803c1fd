"""Merge the parts of all corpora, in order, into the training files, with or without duplicate pairs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from corpora.job import read_json
from numpy.typing import NDArray

from . import parts
from .parts import KEPT, SHOWN
from .sources import Source


@dataclass
class Tally:
    """Hold the counts of a corpus.

    Args:
        counts: Number of pairs that were read, kept or normalised, and number of pairs that each cleaning step left
            out. `words 0` and `words 1` are the numbers of words on the two sides.
        lines: Line numbers of the first pairs that each step left out.
    """

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def leave(self, step: str, number: int, lines: list[int]) -> None:
        self.counts[step] += number
        known = self.lines.setdefault(step, [])
        known += lines[: SHOWN - len(known)]


def total(tallies: Iterable[Tally]) -> Counter[str]:
    """Return the sum of the counts of all corpora."""
    return sum((tally.counts for tally in tallies), Counter[str]())


def merge(folder: Path, sources: list[Source], targets: tuple[Path, Path], *, duplicates: bool) -> list[Tally]:
    """Write the pairs of all parts into the training files.

    Args:
        folder: Folder of the parts.
        sources: Corpora.
        targets: Output files of the two languages.
        duplicates: Whether to keep duplicate pairs.
    Returns:
        The counts of each corpus.
    """
    names = [[*_names(folder, corpus)] for corpus in range(len(sources))]
    kept = {name: np.fromfile(folder / f"{name}.kept", KEPT) for part_names in names for name in part_names}
    masks = iter(_masks([*kept.values()], duplicates=duplicates))
    tallies = [Tally(source.name) for source in sources]
    with targets[0].open("wb") as a, targets[1].open("wb") as b:
        for tally, part_names in zip(tallies, names, strict=True):
            for name in part_names:
                mask = next(masks)
                _count(tally, read_json(folder / f"{name}.json"), kept[name], mask)
                for file, end in ((a, "a"), (b, "b")):
                    with (folder / f"{name}.{end}").open("rb") as part:
                        file.writelines(itertools.compress(part, mask.tolist()))
    return tallies


def _names(folder: Path, corpus: int) -> Iterator[str]:
    """Yield the names of the parts of a corpus."""
    for number in itertools.count():
        name = parts.name(corpus, number)
        if not (folder / f"{name}.json").is_file():
            return
        yield name


def _masks(kept: list[NDArray[np.void]], *, duplicates: bool) -> list[NDArray[np.bool_]]:
    """Return a mask for each part, [pairs]: true for the pairs to write."""
    ends = np.cumsum([len(part) for part in kept])
    mask = np.ones(int(ends[-1]), bool)
    if not duplicates:
        high, low = (np.concatenate([part[name] for part in kept]) for name in ("high", "low"))
        order = np.lexsort((low, high))  # stable: among equal keys, the first pair stays first
        repeated = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
        mask[order[1:][repeated]] = False
    return np.split(mask, ends[:-1])


def _count(tally: Tally, record: dict[str, Any], kept: NDArray[np.void], mask: NDArray[np.bool_]) -> None:
    for step, number in record["left out"].items():
        tally.leave(step, number, record["lines"][step])
    duplicates, written = kept[~mask], kept[mask]
    if len(duplicates):
        tally.leave("duplicate", len(duplicates), duplicates["line"][:SHOWN].tolist())
    words = written["words"].sum(axis=0, dtype=np.int64).tolist()
    tally.counts.update({"read": record["read"], "kept": len(written), "mended": int(written["mended"].sum())})
    tally.counts.update({f"words {side}": number for side, number in enumerate(words)})
