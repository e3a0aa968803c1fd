"""What the stages read of a prepared folder."""

from __future__ import annotations

from pathlib import Path

from fairseq.data import data_utils

from recipes.lib.lines import read

FIRST = 4  # fairseq's special symbols come before a dictionary's


def labels(folder: Path, split: str) -> list[int] | list[float]:
    """The classes of its rows, or their numbers, in the order of the file."""
    numbers = folder / "label" / f"{split}.label"
    if numbers.is_file():
        return [float(line) for line in read(numbers)]
    found = data_utils.load_indexed_dataset(str(folder / "label" / split), None, "mmap")
    return [int(found[number][0]) - FIRST for number in range(len(found))]


def ids(folder: Path, split: str) -> list[str]:
    """What the published file calls its rows."""
    return list(read(folder / f"{split}.ids"))
