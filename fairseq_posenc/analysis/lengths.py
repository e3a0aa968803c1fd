"""Count how often each relative distance occurs between tokens of a data set, given the lengths of its texts.

Source: Qu et al. 2021 (LFHC, GCDF), Figures 3 and 4 and section A.1. A text of L tokens has L - |p| pairs of tokens at
    distance p.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .style import DISTANCE, GREY, Row, panels, styled, whole_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Lengths(NamedTuple):
    """Hold how many texts of a data set have each length, and how many pairs of their tokens have each distance.

    Args:
        counts: Number of texts of each length from 0 to the longest length, [longest + 1].
        pairs: Number of token pairs at each distance from 0 to longest - 1. Distance -p occurs as often as p.
    """

    counts: NDArray[np.int64]
    pairs: NDArray[np.int64]


def data(lengths: Sequence[int]) -> Lengths:
    """Return how many texts have each length, and how many pairs of tokens have each distance.

    Args:
        lengths: Length of each text in tokens.

    Raises:
        ValueError: There are no lengths, or one of them is less than 1.
    """
    if not len(lengths):
        raise ValueError("the list of lengths is empty. Give the length of at least one text.")
    if min(lengths) < 1:
        raise ValueError(f"the lengths contain {min(lengths)}, but must be at least 1. Remove empty texts.")
    counts = np.bincount(np.asarray(lengths))
    at_least = counts[::-1].cumsum()[::-1]  # items of at least so many tokens
    return Lengths(counts, at_least[::-1].cumsum()[::-1][1:])  # sum over lengths of count * (length - p)


def lengths_of(folder: Path, split: str) -> dict[str, list[int]]:
    """Return the length in tokens of each text in a split of data in fairseq's binary format.

    In a folder for sentence prediction (with input0 and maybe input1), the length of an item is that of all its texts
    together. Each text counts its </s>; a <s> that the task adds does not count.

    Returns:
        The lengths, keyed by file name. A translation corpus has one file for each language.

    Raises:
        FileNotFoundError: The folder has no such split.
    """
    inputs = sorted(folder.glob("input[0-9]"))
    if inputs:
        sizes = [lengths_of(place, split)[split] for place in inputs]
        return {split: [sum(item) for item in zip(*sizes, strict=True)]}
    files = sorted(path.with_suffix("") for path in folder.glob(f"{split}*.idx") if _is_split(path.stem, split))
    if not files:
        present = sorted({path.name.split(".")[0] for path in folder.glob("*.idx")})
        choose = (
            f"Choose one with --split: {', '.join(present)}." if present else "Give --data a folder with *.idx files."
        )
        raise FileNotFoundError(f"{folder} has no split {split}. {choose}")
    return {file.name: _sizes(file) for file in files}


def _sizes(file: Path) -> list[int]:
    from ..compat.registration import register  # imports torch

    register()
    from fairseq.data.indexed_dataset import get_indexed_dataset_to_local, make_dataset

    # The dataset unmaps its file when it is deleted, and reading its sizes would then crash Python.
    dataset = make_dataset(get_indexed_dataset_to_local(str(file)), "mmap")
    return [int(size) for size in dataset.sizes]


def _is_split(stem: str, split: str) -> bool:
    return stem == split or stem.startswith(f"{split}.")


def draw(sets: Mapping[str, Lengths]) -> Figure:
    """Draw each data set's distribution of lengths (left) and its number of token pairs at each distance (right)."""
    with styled():
        titles = [f"{name}: {what}" for name in sets for what in ("texts of each length", "pairs at each distance")]
        figure, axes = panels(titles, columns=2)
        for left, right, item in zip(axes[::2], axes[1::2], sets.values(), strict=True):
            left.bar(np.arange(len(item.counts)), item.counts, width=1.0)
            whole_ticks(left)
            left.set_xlabel("length in tokens")
            left.set_ylabel("texts")
            distances = np.arange(1 - len(item.pairs), len(item.pairs))
            right.plot(distances, np.concatenate([item.pairs[:0:-1], item.pairs]))
            right.axvline(0, color=GREY, linewidth=0.6, linestyle="-")
            whole_ticks(right)
            right.set_xlabel(DISTANCE)
            right.set_yscale("log")
            right.set_ylabel("pairs of tokens (logarithmic)")
    return figure


def rows(sets: Mapping[str, Lengths]) -> list[Row]:
    """Return a row for each number n: how many texts have length n, and how many token pairs have distance n."""
    return [
        {"data": name, "length or distance": number, "texts": texts, "pairs": pairs}
        for name, item in sets.items()
        for number, (texts, pairs) in enumerate(zip(item.counts.tolist(), [*item.pairs.tolist(), 0], strict=True))
    ]
