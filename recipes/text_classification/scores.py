"""Read labels and words from a folder of binary data, and score predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean

from fairseq.data import data_utils

from fairseq_posenc.metrics import classification

FIRST = 4  # id of the first word; fairseq's special symbols have smaller ids
#: Upper ends of the groups of text lengths, in words of both texts together.
LENGTHS = (5, 10, 15, 20, 30, 50, 100, 200)


def labels(folder: Path, split: str) -> list[int]:
    """Return the class of each row."""
    items = data_utils.load_indexed_dataset(str(folder / "label" / split), None, "mmap")
    return [int(items[number][0]) - FIRST for number in range(len(items))]


def words(folder: Path, split: str) -> list[list[list[int]]]:
    """Return the word ids of the one or two texts in each row, without </s>."""
    names = [name for name in ("input0", "input1") if (folder / name).is_dir()]
    texts = [data_utils.load_indexed_dataset(str(folder / name / split), None, "mmap") for name in names]
    return [[text[number].tolist()[:-1] for text in texts] for number in range(len(texts[0]))]


def score(answers: Mapping[str, Sequence[int]], gold: Mapping[str, Sequence[int]], metrics: Sequence[str]) -> float:
    """Return the mean over metrics and splits in percent; the paper reports such means for QQP and MNLI."""
    return 100 * mean(classification.METRICS[name](answers[split], gold[split]) for split in gold for name in metrics)


def by_length(
    rows: Sequence[list[list[int]]], answers: Sequence[int], gold: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Return the accuracy in percent and the number of rows for each group of text lengths that has rows."""
    groups: dict[str, list[bool]] = {}
    for row, answer, label in zip(rows, answers, gold, strict=True):
        groups.setdefault(group(sum(map(len, row))), []).append(answer == label)
    order = [group(end) for end in (*LENGTHS, LENGTHS[-1] + 1)]
    return {name: {"accuracy": 100 * mean(groups[name]), "rows": len(groups[name])} for name in order if name in groups}


def group(length: int) -> str:
    """Return the name of the group to which a text length belongs, such as `6-10`."""
    ends = [0, *LENGTHS]
    for low, high in pairwise(ends):
        if length <= high:
            return f"{low + 1}-{high}"
    return f"{LENGTHS[-1] + 1}+"
