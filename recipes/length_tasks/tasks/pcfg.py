"""Apply nested functions to strings (the string-edit functions of PCFG SET, Hupkes et al. 2020).

An input such as `append swap A B C , repeat D` is written in Polish notation, without brackets. The examples are drawn
from a grammar of our own; the paper's examples follow the statistics of an English corpus.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .task import Example, Task, by_length

LETTERS = [chr(code) for code in range(ord("A"), ord("Z") + 1)]
LONGEST = 4  # letters of a string in the input
String = list[str]

UNARY: dict[str, Callable[[String], String]] = {
    "copy": lambda x: x,
    "reverse": lambda x: x[::-1],
    "shift": lambda x: x[1:] + x[:1],
    "swap_first_last": lambda x: [x[-1], *x[1:-1], x[0]] if len(x) > 1 else x,
    "repeat": lambda x: x + x,
    "echo": lambda x: [*x, x[-1]],
}
BINARY: dict[str, Callable[[String, String], String]] = {
    "append": lambda x, y: x + y,
    "prepend": lambda x, y: y + x,
    "remove_first": lambda x, y: y,
    "remove_second": lambda x, y: x,
}
TOO_LONG = 48  # tokens of an output; longer ones are drawn again


def expression(rng: random.Random, functions: int) -> tuple[list[str], String]:
    """Return the tokens of a random expression with this number of functions, and its value."""
    if functions == 0:
        text = rng.choices(LETTERS, k=rng.randint(2, LONGEST))
        return text, text
    name = rng.choice([*UNARY, *BINARY])
    if name in UNARY:
        tokens, value = expression(rng, functions - 1)
        return [name, *tokens], UNARY[name](value)
    left = rng.randint(0, functions - 1)
    (first, x), (second, y) = expression(rng, left), expression(rng, functions - 1 - left)
    return [name, *first, ",", *second], BINARY[name](x, y)


def draw(rng: random.Random, length: int) -> Example:
    while True:
        tokens, value = expression(rng, length)
        if len(value) <= TOO_LONG:
            return Example(length, tokens, value)


TASKS = {"pcfg": Task("encoder-decoder", "functions", "Hupkes et al. 2020", 8, by_length(draw))}
