"""Test whether differences between mean scores over several seeds may be due to chance."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, variance

from fairseq_posenc.analysis.results import half_width


def interval(scores: Sequence[float], low: float, high: float) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean (Student's t), cut at the lowest and highest possible score."""
    if len(scores) < 2:
        return None
    centre, within = mean(scores), half_width(scores)
    return max(low, centre - within), min(high, centre + within)


def welch(first: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Welch's t-test.

    The result is None if a sample has fewer than two values, or if the test is undefined because each sample repeats a
    value of its own. It is 1 if all values of both samples are equal.
    """
    from scipy import stats  # imported here, because a run with one seed needs no test

    if min(len(first), len(other)) < 2:
        return None
    if not (variance(first) or variance(other)):
        return 1.0 if first[0] == other[0] else None
    return float(stats.ttest_ind(first, other, equal_var=False).pvalue)


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Return p-values with Holm's correction (Holm 1979); None stays None and does not count as a test."""
    corrected, largest = list(values), 0.0
    tested = sorted((p, number) for number, p in enumerate(values) if p is not None)
    for rank, (p, number) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - rank) * p))
        corrected[number] = largest
    return corrected
