"""Copy, reverse and sort random strings, and tell whether the number of ones is odd.

`copy` is from Kazemnejad et al. 2023. `reverse`, `sort` (bucket sort, with five kinds of digits) and `parity` (parity
check) are from Ruoss et al. 2023. An encoder learns `reverse-tags` and `sort-tags`: it tags each token with the token
at its place in the reversed or sorted string.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .task import ANSWER, UNCOUNTED, Example, Task, Tokens, answered, by_length

LETTERS, DIGITS, BITS = "abcdefgh", "01234", "01"


def backwards(text: Tokens) -> Tokens:
    return text[::-1]


def written(symbols: str, change: Callable[[Tokens], Tokens]) -> Callable[[random.Random, int], Example]:
    """Return a function that draws a string for a decoder, which writes the changed string after it."""

    def draw(rng: random.Random, length: int) -> Example:
        text = rng.choices(symbols, k=length)
        return answered(length, text, change(text))

    return draw


def tagged(symbols: str, change: Callable[[Tokens], Tokens]) -> Callable[[random.Random, int], Example]:
    """Return a function that draws a string for an encoder, which tags each token with that of the changed string."""

    def draw(rng: random.Random, length: int) -> Example:
        text = rng.choices(symbols, k=length)
        return Example(length, text, change(text))

    return draw


def parity(rng: random.Random, length: int) -> Example:
    bits = rng.choices(BITS, k=length)
    return Example(length, [*bits, ANSWER], [UNCOUNTED] * length + [str(bits.count("1") % 2)])


RUOSS = "Ruoss et al. 2023"
TASKS = {
    "copy": Task("decoder", "letters", "Kazemnejad et al. 2023", 20, by_length(written(LETTERS, list))),
    "reverse": Task("decoder", "letters", RUOSS, 20, by_length(written(LETTERS, backwards))),
    "sort": Task("decoder", "digits", RUOSS, 20, by_length(written(DIGITS, sorted))),
    "parity": Task("decoder", "bits", RUOSS, 20, by_length(parity)),
    "reverse-tags": Task("encoder", "letters", RUOSS, 20, by_length(tagged(LETTERS, backwards))),
    "sort-tags": Task("encoder", "digits", RUOSS, 20, by_length(tagged(DIGITS, sorted))),
}
