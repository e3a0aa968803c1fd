"""Questions that no model made: what a generated one has to beat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cdist

from .units import pattern_of, units_of

#: the most frequent units, of which a constant is made, and questions it is chosen on, evenly drawn: more change
#: nothing that can be seen, and take minutes
MOST_UNITS, MOST_QUESTIONS = 60, 2000


def first_units(sentence: str, count: int, units: str = "words") -> str:
    """The beginning of a text, up to and with its unit number `count`.

    Raises:
        ValueError: unknown units.
    """
    found = [one.end() for one in islice(pattern_of(units).finditer(sentence), count)]
    return sentence[: found[-1]].strip() if found else ""


def best_constant(questions: Sequence[str], units: str = "words") -> str:
    """The text with the best mean ROUGE-L over questions, each with one reference, as greedy steps find it: a unit put
    in, put in another's place, or taken out, as long as it helps.

    Raises:
        ValueError: no questions, unknown units.
    """
    if not questions:
        raise ValueError("the best constant output is chosen on training questions, and there are none")
    step = max(1, len(questions) // MOST_QUESTIONS)
    found = [units_of(one, units) for one in questions[::step]]
    frequent = [unit for unit, _ in Counter(unit for one in found for unit in dict.fromkeys(one)).most_common()]
    # a character for each unit: rapidfuzz compares many pairs of strings at once
    code = {unit: chr(number) for number, unit in enumerate(frequent, start=1)}
    best = _climbed(["".join(map(code.__getitem__, one)) for one in found], [*code.values()][:MOST_UNITS])
    names = {letter: unit for unit, letter in code.items()}
    return ("" if units == "characters" else " ").join(map(names.__getitem__, best))


def _climbed(references: list[str], alphabet: list[str]) -> str:
    best, reached = "", 0.0
    while True:
        candidates = list(dict.fromkeys(_neighbours(best, alphabet)))
        values = _means(candidates, references)
        top = int(values.argmax())
        if values[top] <= reached + 1e-9:
            return best
        best, reached = candidates[top], float(values[top])


def _neighbours(text: str, alphabet: list[str]) -> Iterator[str]:
    for place in range(len(text) + 1):
        before, behind = text[:place], text[place:]
        yield from (f"{before}{unit}{behind}" for unit in alphabet)
        if behind:
            yield from (f"{before}{unit}{behind[1:]}" for unit in ["", *alphabet])


def _means(candidates: list[str], references: list[str]) -> NDArray[np.float64]:
    """Mean ROUGE-L (F1) [candidates]."""
    common = cdist(candidates, references, scorer=LCSseq.similarity, dtype=np.int32)
    lengths = np.array([*map(len, candidates)])[:, None] + np.array([*map(len, references)])
    values: NDArray[np.float64] = (2 * common / np.maximum(lengths, 1)).mean(1)
    return values
