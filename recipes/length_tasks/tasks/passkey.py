"""Find a number that is hidden in a long text without information (passkey retrieval, Mohtashami and Jaggi 2023)."""

from __future__ import annotations

import random

from .task import Example, Task, answered, by_length

FILLER = "the grass is green .|the sky is blue .|the sun is yellow .|here we go .|there and back again .".split("|")
DIGITS = "0123456789"
NUMBER = 5  # digits of the number, as in the paper


def draw(rng: random.Random, length: int) -> Example:
    number = rng.choices(DIGITS, k=NUMBER)
    sentences = [FILLER[place % len(FILLER)].split() for place in range(length)]
    sentences.insert(rng.randint(0, length), ["the", "pass", "key", "is", *number, "."])
    prompt = [word for sentence in sentences for word in sentence]
    return answered(length, [*prompt, "what", "is", "the", "pass", "key", "?"], number)


TASK = Task("decoder", "sentences", "Mohtashami and Jaggi 2023", 10, by_length(draw))
