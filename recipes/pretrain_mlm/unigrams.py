"""Compute the loss of a model that only knows piece frequencies, which is the plateau at the start of every training.

The frequencies come from the training text, with one added to each count. The loss is in bits per piece of the
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

from recipes.lib.package import write_whole

AT_ONCE = 10_000  # items that are counted at once


def counts(prefix: Path, types: int) -> NDArray[np.float64]:
    """Return how often each id occurs in a dataset: [types]."""
    dataset: Any = data_utils.load_indexed_dataset(str(prefix), None, "mmap")
    found = np.zeros(types)
    for start in range(0, len(dataset), AT_ONCE):
        items = [dataset[number].numpy() for number in range(start, min(start + AT_ONCE, len(dataset)))]
        found += np.bincount(np.concatenate(items), minlength=types)
    return found


def cross_entropy(train: NDArray[np.float64], valid: NDArray[np.float64]) -> float:
    """Return the bits per piece of `valid` under the smoothed frequencies of `train`; both are counts, [types]."""
    probabilities = (train + 1) / (train + 1).sum()
    return float(-(valid * np.log2(probabilities)).sum() / valid.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard", type=Path, required=True, help="the first, which has the validation text too")
    parser.add_argument("--without-specials", action="store_true", help="</s> is not predicted where words are masked")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    dictionary = Dictionary.load(str(asked.shard / "dict.txt"))
    train, valid = (counts(asked.shard / split, len(dictionary)) for split in ("train", "valid"))
    if asked.without_specials:
        train, valid = train[dictionary.nspecial :], valid[dictionary.nspecial :]
    facts = {"bits": cross_entropy(train, valid), "pieces": int(train.sum()), "valid pieces": int(valid.sum())}
    write_whole(asked.output, json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
