"""Write a random string of letters backwards (`reverse string` of Ruoss et al. 2023)."""

from __future__ import annotations

import random

from .copying import LETTERS
from .task import Example, Task, answered, by_length


def draw(rng: random.Random, length: int) -> Example:
    text = rng.choices(LETTERS, k=length)
    return answered(length, text, text[::-1])


TASK = Task("decoder", "letters", "Ruoss et al. 2023", 20, by_length(draw))
