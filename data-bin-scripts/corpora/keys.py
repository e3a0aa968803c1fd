"""Draw random numbers that depend only on the seed and the document, not on the machine or the order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
#: purposes of random numbers; each purpose has its own numbers
VALID, SHARD, ORDER, COPY, SAMPLE, FILES = range(1, 7)


def keys(seed: int, use: int, *names: Keys | int) -> Keys:
    """Return a random 64-bit number (uniform) for each of n documents, [n].

    Args:
        seed: Random seed.
        use: Purpose of the numbers, such as `VALID`.
        names: Numbers that identify the documents, such as file numbers; each is an array [n], or one number for all.
    """
    numbers = _mixed(np.array([seed], np.uint64) * np.uint64(16) + np.uint64(use))
    for name in names:
        numbers = _mixed(numbers ^ np.atleast_1d(np.asarray(name, np.uint64)))
    return numbers


def fractions(numbers: Keys) -> NDArray[np.float64]:
    """Convert random 64-bit numbers to fractions in [0, 1)."""
    return (numbers >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def _mixed(number: Keys) -> Keys:
    """Apply the mixing function splitmix64 (Steele, Lea and Flood 2014), whose 64-bit products overflow on purpose."""
    with np.errstate(over="ignore"):
        number = number + np.uint64(0x9E3779B97F4A7C15)
        number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return number ^ (number >> np.uint64(31))
