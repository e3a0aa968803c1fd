"""Tag each letter of a random string with the letter at its place in the reversed string."""

from __future__ import annotations

import random

from .copying import LETTERS
from .task import Example, Task, by_length


def draw(rng: random.Random, length: int) -> Example:
    text = rng.choices(LETTERS, k=length)
    return Example(length, text, text[::-1])


TASK = Task("encoder", "letters", "Ruoss et al. 2023", 20, by_length(draw))
