"""Add two numbers with the same number of digits; the sum has one digit more (Kazemnejad et al. 2023)."""

from __future__ import annotations

import random

from .task import Example, Task, answered, by_length


def numbers(rng: random.Random, length: int) -> tuple[str, str, str]:
    """Return two random numbers with `length` digits, and their sum with one digit more; leading zeros are possible."""
    first, second = (rng.randrange(10**length) for _ in range(2))
    return f"{first:0{length}d}", f"{second:0{length}d}", f"{first + second:0{length + 1}d}"


def draw(rng: random.Random, length: int) -> Example:
    first, second, total = numbers(rng, length)
    return answered(length, [*first, "+", *second], [*total])


TASK = Task("decoder", "digits of a number", "Kazemnejad et al. 2023", 8, by_length(draw))
