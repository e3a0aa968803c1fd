"""Add two numbers from the lowest digit on; before each digit, a hint names the digit's place (Zhou et al. 2024).

The hints are consecutive symbols. The first symbol is random, so that short numbers teach the symbols of long numbers.
"""

from __future__ import annotations

import random

from .addition import numbers
from .task import Example, Task, answered, by_length

HINTS = 20  # number of different hints; each digit of a sum needs another one


def draw(rng: random.Random, length: int) -> Example:
    first, second, total = (text[::-1] for text in numbers(rng, length))
    if len(total) > HINTS:
        raise ValueError(f"Numbers have at most {HINTS - 1} digits here, not {length}. Lower --longest or --tested.")
    offset = rng.randint(0, HINTS - len(total))

    def hinted(digits: str) -> list[str]:
        return [token for place, digit in enumerate(digits) for token in (f"h{offset + place}", digit)]

    return answered(length, [*hinted(first), "+", *hinted(second)], hinted(total))


TASK = Task("decoder", "digits of a number", "Zhou et al. 2024", 8, by_length(draw))
