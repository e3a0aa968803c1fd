"""Tell whether the number of ones in a random string of bits is even (`parity check` of Ruoss et al. 2023)."""

from __future__ import annotations

import random

from .task import ANSWER, UNCOUNTED, Example, Task, by_length

BITS = "01"


def draw(rng: random.Random, length: int) -> Example:
    bits = rng.choices(BITS, k=length)
    return Example(length, [*bits, ANSWER], [UNCOUNTED] * length + [str(bits.count("1") % 2)])


TASK = Task("decoder", "bits", "Ruoss et al. 2023", 20, by_length(draw))
