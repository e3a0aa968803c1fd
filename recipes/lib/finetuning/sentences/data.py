"""Read the labels and ids of rows from a folder that prepare_glue.py wrote."""

from __future__ import annotations

from pathlib import Path

from fairseq.data import data_utils

from recipes.lib.lines import read

FIRST = 4  # index of the first label in its dictionary, which begins with fairseq's four special symbols


def labels(folder: Path, split: str) -> list[int] | list[float]:
    """Return the class (in regression: the score) of each row of a split, in the order of the file."""
    numbers = folder / "label" / f"{split}.label"
    if numbers.is_file():
        return [float(line) for line in read(numbers)]
    classes = data_utils.load_indexed_dataset(str(folder / "label" / split), None, "mmap")
    return [int(classes[number][0]) - FIRST for number in range(len(classes))]


def ids(folder: Path, split: str) -> list[str]:
    """Return the ids that the published file gives to the rows of a split, in the order of the rows."""
    return list(read(folder / f"{split}.ids"))
