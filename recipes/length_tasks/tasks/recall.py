"""Find what was written earlier: the last bit, the values of keys, or a number in a long text.

`flip-flop` (Liu et al. 2023): a string consists of instructions, each followed by a bit: `w` writes the bit, `i`
ignores it, and `r` reads the bit that was written last. The first instruction is `w` and the last one is `r`. The model
must predict the bit after each `r`.

`recall` (multi-query associative recall, Arora et al. 2024): a string consists of pairs of a key and a value, followed
by all keys in random order. The model must predict the value of each of these keys.

`passkey` (passkey retrieval, Mohtashami and Jaggi 2023): a number is hidden in a long text without information.
"""

from __future__ import annotations

import random
from itertools import pairwise

from .task import ANSWER, UNCOUNTED, Example, Task, answered, by_length

SHORTEST = 2  # instructions of `flip-flop`: the first `w` and the last `r`
IGNORED = 0.8  # probability of `i`; `w` and `r` share the rest, as in the paper's training set
KEYS = [f"k{number}" for number in range(32)]
VALUES = [f"v{number}" for number in range(32)]
FILLER = "the grass is green .|the sky is blue .|the sun is yellow .|here we go .|there and back again .".split("|")
NUMBER = 5  # digits of the hidden number, as in the paper


def flip_flop(rng: random.Random, length: int) -> Example:
    if length < SHORTEST:
        raise ValueError(f"A string has at least {SHORTEST} instructions, not {length}. Raise --longest or --tested.")
    kinds = rng.choices("iwr", (IGNORED, (1 - IGNORED) / 2, (1 - IGNORED) / 2), k=length - SHORTEST)
    tokens, memory = list[str](), ""
    for kind in ["w", *kinds, "r"]:
        bit = memory if kind == "r" else rng.choice("01")
        memory = memory if kind == "i" else bit
        tokens += [kind, bit]
    output = [after if kind == "r" else UNCOUNTED for kind, after in pairwise(tokens)]
    return Example(length, tokens[:-1], output)


def recall(rng: random.Random, length: int) -> Example:
    if length > len(KEYS):
        raise ValueError(f"There are {len(KEYS)} keys, too few for {length} pairs. Lower --longest or --tested.")
    keys = rng.sample(KEYS, length)
    value = {key: rng.choice(VALUES) for key in keys}
    pairs = [token for key in keys for token in (key, value[key])]
    asked = [token for key in rng.sample(keys, length) for token in (key, value[key])]
    output = [value[token] if place % 2 == 0 else UNCOUNTED for place, token in enumerate(asked)]
    return Example(length, [*pairs, ANSWER, *asked], [UNCOUNTED] * (len(pairs) + 1) + output)


def passkey(rng: random.Random, length: int) -> Example:
    number = rng.choices("0123456789", k=NUMBER)
    sentences = [FILLER[place % len(FILLER)].split() for place in range(length)]
    sentences.insert(rng.randint(0, length), ["the", "pass", "key", "is", *number, "."])
    prompt = [word for sentence in sentences for word in sentence]
    return answered(length, [*prompt, "what", "is", "the", "pass", "key", "?"], number)


TASKS = {
    "flip-flop": Task("decoder", "instructions", "Liu et al. 2023", 20, by_length(flip_flop, shortest=SHORTEST)),
    "recall": Task("decoder", "pairs", "Arora et al. 2024", 8, by_length(recall)),
    "passkey": Task("decoder", "sentences", "Mohtashami and Jaggi 2023", 10, by_length(passkey)),
}
