"""Copy a random string of letters (Kazemnejad et al. 2023)."""

from __future__ import annotations

import random

from .task import Example, Task, answered, by_length

LETTERS = "abcdefgh"


def draw(rng: random.Random, length: int) -> Example:
    text = rng.choices(LETTERS, k=length)
    return answered(length, text, text)


TASK = Task("decoder", "letters", "Kazemnejad et al. 2023", 20, by_length(draw))
