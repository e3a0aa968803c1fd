"""Define what a task consists of: examples of a chosen length, and how they are split by length."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

Kind = Literal["decoder", "encoder", "encoder-decoder"]
Tokens = list[str]

#: Stands in an output for a token that the model need not predict.
UNCOUNTED = "_"
END = "</s>"
#: A prompt ends with this token, and the answer follows.
ANSWER = "="
#: Splits of every task. `within` and `beyond` are the test sets: lengths up to and above the longest one of training.
SPLITS = ("train", "valid", "within", "beyond")
#: Number of attempts to draw an example that no test set contains.
ATTEMPTS = 1000


class Example(NamedTuple):
    """Hold an example: the input of a model and the expected output.

    Args:
        length: Length of the example, in the unit of its task.
        input: Tokens that the model reads.
        output: For a decoder or an encoder, the token to predict at each token of the input (`UNCOUNTED` where any
            prediction is right). For an encoder-decoder, these are the tokens to generate, without END.
    """

    length: int
    input: Tokens
    output: Tokens


class Sizes(NamedTuple):
    """Hold the lengths and the numbers of examples.

    Args:
        longest: Maximum length of a training or validation example.
        tested: Lengths of the test examples.
        rows: Number of examples of each split; for a test set, the number of examples of each length.
    """

    longest: int
    tested: tuple[int, ...]
    rows: Mapping[str, int]


class Task(NamedTuple):
    """Describe a task.

    Args:
        kind: Kind of the model that learns the task.
        unit: What a length counts, in the plural.
        source: Paper that defines the task.
        longest: Maximum length of a training example if --longest is not set; None for a published split.
        split: Function that returns the examples of each split.
    """

    kind: Kind
    unit: str
    source: str
    longest: int | None
    split: Callable[[random.Random, Sizes], dict[str, list[Example]]]


def answered(length: int, prompt: Sequence[str], answer: Sequence[str]) -> Example:
    """Return an example for a decoder, which reads the prompt and predicts each token of the answer and its end."""
    return Example(length, [*prompt, ANSWER, *answer], [UNCOUNTED] * len(prompt) + [*answer, END])


def by_length(
    draw: Callable[[random.Random, int], Example], shortest: int = 1
) -> Callable[[random.Random, Sizes], dict[str, list[Example]]]:
    """Return the function `split` of a task whose examples are drawn at random.

    The lengths of training and validation examples are drawn uniformly from `shortest` to `sizes.longest`. The test
    sets contain the same number of different examples for each tested length; no other split contains one of their
    inputs.

    Args:
        draw: Function that returns a random example of a given length.
        shortest: Shortest length of an example.
    """

    def split(rng: random.Random, sizes: Sizes) -> dict[str, list[Example]]:
        seen: set[tuple[str, ...]] = set()
        splits: dict[str, list[Example]] = {name: [] for name in SPLITS}
        for length in sizes.tested:
            name = "within" if length <= sizes.longest else "beyond"
            tested = [_new(draw, rng, length, seen) for _ in range(sizes.rows[name])]
            splits[name] += tested
        held_out = frozenset(seen)
        for name in ("valid", "train"):
            lengths = (rng.randint(shortest, sizes.longest) for _ in range(sizes.rows[name]))
            splits[name] = [_new(draw, rng, length, set(held_out)) for length in lengths]
        return splits

    return split


def _new(
    draw: Callable[[random.Random, int], Example], rng: random.Random, length: int, seen: set[tuple[str, ...]]
) -> Example:
    """Return an example whose input is not in `seen`, and add its input to `seen`.

    Raises:
        ValueError: The task has too few different examples of this length.
    """
    for _ in range(ATTEMPTS):
        example = draw(rng, length)
        if (key := tuple(example.input)) not in seen:
            seen.add(key)
            return example
    raise ValueError(
        f"The task has too few different examples of length {length}. Use greater multiples in --tested, or "
        "smaller numbers in --rows.within and --rows.beyond."
    )
