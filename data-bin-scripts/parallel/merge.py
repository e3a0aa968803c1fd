"""Merge the parts of all corpora, in order, into the training files; of equal pairs only the first is kept."""

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
    """The counts of a corpus.

    Args:
        counts: Numbers of pairs that were read, kept, mended and left out by each step, and of `words 0` and `words 1`.
        lines: The first line numbers of the pairs that each step left out.
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
    return sum((one.counts for one in tallies), Counter[str]())


def merge(folder: Path, sources: list[Source], targets: tuple[Path, Path], *, duplicates: bool) -> list[Tally]:
    """Write the pairs of all parts into the training files.

    Args:
        folder: Folder of the parts.
        sources: Corpora.
        targets: Output files of the two languages.
        duplicates: Keep duplicate pairs.
    Returns:
        The counts of each corpus.
    """
    names = [[*_names(folder, corpus)] for corpus in range(len(sources))]
    kept = {name: np.fromfile(folder / f"{name}.kept", KEPT) for some in names for name in some}
    chosen = iter(_chosen([*kept.values()], duplicates=duplicates))
    tallies = [Tally(source.name) for source in sources]
    with targets[0].open("wb") as a, targets[1].open("wb") as b:
        for tally, some in zip(tallies, names, strict=True):
            for name in some:
                mask = next(chosen)
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


def _chosen(kept: list[NDArray[np.void]], *, duplicates: bool) -> list[NDArray[np.bool_]]:
    """Return for each part which of its pairs are kept, [pairs]."""
    ends = np.cumsum([len(one) for one in kept])
    found = np.ones(int(ends[-1]), bool)
    if not duplicates:
        high, low = (np.concatenate([one[name] for one in kept]) for name in ("high", "low"))
        order = np.lexsort((low, high))  # stable: among equal keys, the first pair stays first
        again = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
        found[order[1:][again]] = False
    return np.split(found, ends[:-1])


def _count(tally: Tally, record: dict[str, Any], kept: NDArray[np.void], mask: NDArray[np.bool_]) -> None:
    for step, number in record["left out"].items():
        tally.leave(step, number, record["lines"][step])
    again, taken = kept[~mask], kept[mask]
    if len(again):
        tally.leave("duplicate", len(again), again["line"][:SHOWN].tolist())
    words = taken["words"].sum(axis=0, dtype=np.int64).tolist()
    tally.counts.update({"read": record["read"], "kept": len(taken), "mended": int(taken["mended"].sum())})
    tally.counts.update({f"words {side}": number for side, number in enumerate(words)})
