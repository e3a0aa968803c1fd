"""Add two numbers; only the sum is written from the lowest digit to the highest (Lee et al. 2023)."""

from __future__ import annotations

import random

from .addition import numbers
from .task import Example, Task, answered, by_length


def draw(rng: random.Random, length: int) -> Example:
    first, second, total = numbers(rng, length)
    return answered(length, [*first, "+", *second], [*reversed(total)])


TASK = Task("decoder", "digits of a number", "Lee et al. 2023", 8, by_length(draw))
