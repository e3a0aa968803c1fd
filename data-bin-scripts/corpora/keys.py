"""Draws that depend on the seed and a document's name alone: the same on every machine, in any order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
#: what a draw is for; each use has its own
VALID, SHARD, ORDER, COPY, SAMPLE, FILES = range(1, 7)


def keys(seed: int, use: int, *names: Keys | int) -> Keys:
    """Uniform 64-bit numbers [n] by the names [n] of documents (number of the file, number in it, ...)."""
    found = _mixed(np.array([seed], np.uint64) * np.uint64(16) + np.uint64(use))
    for name in names:
        found = _mixed(found ^ np.atleast_1d(np.asarray(name, np.uint64)))
    return found


def fractions(found: Keys) -> NDArray[np.float64]:
    """In [0, 1)."""
    return (found >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def _mixed(number: Keys) -> Keys:
    """splitmix64 (Steele, Lea and Flood 2014); it wraps around on purpose."""
    with np.errstate(over="ignore"):
        number = number + np.uint64(0x9E3779B97F4A7C15)
        number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return number ^ (number >> np.uint64(31))
