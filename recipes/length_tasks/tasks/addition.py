"""Add two numbers with the same number of digits; the sum has one digit more.

In `addition`, the highest digit comes first (Kazemnejad et al. 2023). In `addition-reversed`, the sum is written from
the lowest digit to the highest (Lee et al. 2023). In `addition-hints`, all numbers begin with their lowest digit, and
before each digit, a hint names the digit's place (Zhou et al. 2024). The hints are consecutive symbols. The first one
is random, so that short numbers teach the symbols of long numbers.
"""

from __future__ import annotations

import random

from .task import Example, Task, answered, by_length

HINTS = 20  # number of different hints; each digit of a sum needs another one


def numbers(rng: random.Random, length: int) -> tuple[str, str, str]:
    """Return two random numbers with `length` digits, and their sum with one digit more; leading zeros are possible."""
    first, second = (rng.randrange(10**length) for _ in range(2))
    return f"{first:0{length}d}", f"{second:0{length}d}", f"{first + second:0{length + 1}d}"


def plain(rng: random.Random, length: int) -> Example:
    first, second, total = numbers(rng, length)
    return answered(length, [*first, "+", *second], [*total])


def lowest_first(rng: random.Random, length: int) -> Example:
    first, second, total = numbers(rng, length)
    return answered(length, [*first, "+", *second], [*reversed(total)])


def with_hints(rng: random.Random, length: int) -> Example:
    first, second, total = (text[::-1] for text in numbers(rng, length))
    if len(total) > HINTS:
        raise ValueError(f"Numbers have at most {HINTS - 1} digits here, not {length}. Lower --longest or --tested.")
    offset = rng.randint(0, HINTS - len(total))

    def hinted(digits: str) -> list[str]:
        return [token for place, digit in enumerate(digits) for token in (f"h{offset + place}", digit)]

    return answered(length, [*hinted(first), "+", *hinted(second)], hinted(total))


UNIT = "digits of a number"
TASKS = {
    "addition": Task("decoder", UNIT, "Kazemnejad et al. 2023", 8, by_length(plain)),
    "addition-reversed": Task("decoder", UNIT, "Lee et al. 2023", 8, by_length(lowest_first)),
    "addition-hints": Task("decoder", UNIT, "Zhou et al. 2024", 8, by_length(with_hints)),
}
