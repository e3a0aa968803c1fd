"""Compute the unigram loss: the loss of a model that only knows piece frequencies. Every training run first reaches the
unigram loss, and may stay there for a while (the plateau).

Each piece is counted in the training text, and one is added to its count. The loss is in bits per piece of the
validation text.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data import Dictionary, data_utils
from numpy.typing import NDArray

from fairseq_posenc.core.writing import write_whole

NAME = "loss of a model that only knows piece frequencies"  # key of the result, and label of a line in the figure
AT_ONCE = 10_000  # items that are counted at once


def counts(prefix: Path, types: int) -> NDArray[np.float64]:
    """Return how often each piece id occurs in a dataset: [types]."""
    dataset: Any = data_utils.load_indexed_dataset(str(prefix), None, "mmap")
    totals = np.zeros(types)
    for start in range(0, len(dataset), AT_ONCE):
        items = [dataset[number].numpy() for number in range(start, min(start + AT_ONCE, len(dataset)))]
        totals += np.bincount(np.concatenate(items), minlength=types)
    return totals


def cross_entropy(train: NDArray[np.float64], valid: NDArray[np.float64]) -> float:
    """Return the bits per piece of a text with the counts `valid` [types], from the training counts `train` [types]."""
    probabilities = (train + 1) / (train + 1).sum()
    return float(-(valid * np.log2(probabilities)).sum() / valid.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--shard", type=Path, required=True, metavar="DIR", help="First shard, which has the validation text.")
    add(
        "--masking", required=True, metavar="NAME", help="Masking; whole-word leaves out </s>, which it never predicts."
    )
    add("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    args = parser.parse_args()
    dictionary = Dictionary.load(str(args.shard / "dict.txt"))
    first = dictionary.nspecial if args.masking == "whole-word" else 0
    train, valid = (counts(args.shard / split, len(dictionary))[first:] for split in ("train", "valid"))
    write_whole(args.output, json.dumps({NAME: cross_entropy(train, valid)}, indent=1))


if __name__ == "__main__":
    main()
