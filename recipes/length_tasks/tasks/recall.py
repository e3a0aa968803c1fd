"""Recall the value of each of several keys (multi-query associative recall, Arora et al. 2024).

A string consists of pairs of a key and a value, followed by all keys in random order. The model must predict the
value of each of these keys.
"""

from __future__ import annotations

import random

from .task import ANSWER, UNCOUNTED, Example, Task, by_length

KEYS = [f"k{number}" for number in range(32)]
VALUES = [f"v{number}" for number in range(32)]


def draw(rng: random.Random, length: int) -> Example:
    if length > len(KEYS):
        raise ValueError(f"There are {len(KEYS)} keys, too few for {length} pairs. Lower --longest or --tested.")
    keys = rng.sample(KEYS, length)
    value = {key: rng.choice(VALUES) for key in keys}
    pairs = [token for key in keys for token in (key, value[key])]
    asked = [token for key in rng.sample(keys, length) for token in (key, value[key])]
    output = [value[token] if place % 2 == 0 else UNCOUNTED for place, token in enumerate(asked)]
    return Example(length, [*pairs, ANSWER, *asked], [UNCOUNTED] * (len(pairs) + 1) + output)


TASK = Task("decoder", "pairs", "Arora et al. 2024", 8, by_length(draw))
