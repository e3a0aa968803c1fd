"""Tag each digit of a random string with the digit at its place in the sorted string."""

from __future__ import annotations

import random

from .sort import DIGITS
from .task import Example, Task, by_length


def draw(rng: random.Random, length: int) -> Example:
    digits = rng.choices(DIGITS, k=length)
    return Example(length, digits, sorted(digits))


TASK = Task("encoder", "digits", "Ruoss et al. 2023", 20, by_length(draw))
