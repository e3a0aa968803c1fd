"""Recall the bit of the latest instruction `write` among instructions to ignore (Liu et al. 2023, flip-flops).

A string consists of instructions, each followed by a bit: `w` writes the bit, `i` ignores it, and `r` reads the bit
that was written last. The first instruction is `w` and the last one is `r`. The model must predict the
bit after each `r`.
"""

from __future__ import annotations

import random
from itertools import pairwise

from .task import UNCOUNTED, Example, Task, by_length

BITS = "01"
SHORTEST = 2  # instructions: the first `w` and the last `r`
IGNORED = 0.8  # probability of `i`; `w` and `r` share the rest, as in the paper's training set


def draw(rng: random.Random, length: int) -> Example:
    if length < SHORTEST:
        raise ValueError(f"A string has at least {SHORTEST} instructions, not {length}. Raise --longest or --tested.")
    kinds = rng.choices("iwr", (IGNORED, (1 - IGNORED) / 2, (1 - IGNORED) / 2), k=length - SHORTEST)
    tokens, memory = list[str](), ""
    for kind in ["w", *kinds, "r"]:
        bit = memory if kind == "r" else rng.choice(BITS)
        memory = memory if kind == "i" else bit
        tokens += [kind, bit]
    output = [after if kind == "r" else UNCOUNTED for kind, after in pairwise(tokens)]
    return Example(length, tokens[:-1], output)


TASK = Task("decoder", "instructions", "Liu et al. 2023", 20, by_length(draw, shortest=SHORTEST))
