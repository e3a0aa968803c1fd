"""Sort a random string of five kinds of digits (`bucket sort` of Ruoss et al. 2023)."""

from __future__ import annotations

import random

from .task import Example, Task, answered, by_length

DIGITS = "01234"


def draw(rng: random.Random, length: int) -> Example:
    digits = rng.choices(DIGITS, k=length)
    return answered(length, digits, sorted(digits))


TASK = Task("decoder", "digits", "Ruoss et al. 2023", 20, by_length(draw))
