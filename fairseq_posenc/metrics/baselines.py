"""Compute outputs without a model, as baselines that generated questions have to beat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ..core.extras import extra
from ..core.refusal import InputError
from .units import pattern_of, units_of

#: Number of the most frequent units that the constant is built from, and of the questions it is chosen on, sampled
#: evenly. Larger numbers make no visible difference and take minutes.
MOST_UNITS, MOST_QUESTIONS = 60, 2000


def first_units(sentence: str, count: int, units: str = "words") -> str:
    """Return the first `count` units of a text.

    Raises:
        ValueError: The units are unknown.
    """
    ends = [match.end() for match in islice(pattern_of(units).finditer(sentence), count)]
    return sentence[: ends[-1]].strip() if ends else ""


def best_constant(questions: Sequence[str], units: str = "words") -> str:
    """Search greedily for the text with the highest mean ROUGE-L against the questions or a sample of them.

    Each step inserts, replaces or deletes one unit, and the search stops when no step raises the score.

    Raises:
        ValueError: There are no questions, or the units are unknown.
    """
    if not questions:
        raise InputError(
            "there are no training questions on which to choose the best constant output. Check that the training "
            "split is not empty."
        )
    step = max(1, len(questions) // MOST_QUESTIONS)
    split_questions = [units_of(question, units) for question in questions[::step]]
    counts = Counter(unit for question in split_questions for unit in dict.fromkeys(question))
    frequent = [unit for unit, _ in counts.most_common()]
    # encode each unit as one character, because rapidfuzz compares many pairs of strings at once
    code = {unit: chr(number) for number, unit in enumerate(frequent, start=1)}
    encoded = ["".join(map(code.__getitem__, question)) for question in split_questions]
    best = _climbed(encoded, [*code.values()][:MOST_UNITS])
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
    """Return the mean ROUGE-L (F1) of each candidate over all references: [candidates]."""
    similarity = extra("rapidfuzz.distance", "ROUGE-L").LCSseq.similarity
    cdist = extra("rapidfuzz.process", "ROUGE-L").cdist
    common = cdist(candidates, references, scorer=similarity, dtype=np.int32)
    lengths = np.array([*map(len, candidates)])[:, None] + np.array([*map(len, references)])
    values: NDArray[np.float64] = (2 * common / np.maximum(lengths, 1)).mean(1)
    return values
