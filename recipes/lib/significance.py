"""Summarise the scores of several seeds, and test whether differences between their means may be due to chance."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev, variance

from scipy import stats

from .recipe import Row

PRECISE = 4  # digits of the scores of single seeds


def summary(column: str, scores: Sequence[float], digits: int = 2) -> Row:
    """Return the mean of a score over seeds, its standard deviation, the number of seeds, and the score of each seed.

    Args:
        column: Name of the score; its value is the mean, or None if there are no scores.
        scores: One score for each seed.
        digits: Number of decimals of the mean and the standard deviation.
    """
    return {
        column: round(mean(scores), digits) if scores else None,
        "sd": round(stdev(scores), digits) if len(scores) > 1 else None,
        "seeds": len(scores),
        f"{column} of seeds": [round(score, PRECISE) for score in scores],
    }


def of_medians(column: str, score: float, scores: Sequence[float], digits: int = 2) -> Row:
    """Return the columns of `summary` with a score that comes from medians; the column `mean` has the mean over seeds.

    Args:
        column: Name of the score.
        score: The score that is computed from medians over the seeds.
        scores: One score for each seed.
        digits: Number of decimals of the score, the mean and the standard deviation.
    """
    over_seeds = summary(column, scores, digits)
    return {**over_seeds, "mean": over_seeds[column], column: round(score, digits)}


def average(values: Sequence[float], digits: int | None = None) -> float | None:
    """Return the mean of the values, rounded to `digits` decimals (None: an integer), or None if `values` is empty."""
    return round(mean(values), digits) if values else None


def compare_with_first(rows: Sequence[Row], column: str, *groups: str) -> None:
    """Add the column `p`: the p-value of a test that compares a row's mean score with the first row of its group.

    The test is Welch's t-test, with Holm's correction for the number of tests in the group. The p-value is None for the
    first row of a group, and if one of the two compared rows has fewer than two seeds.

    Args:
        rows: Rows with the column `COLUMN of seeds` (the score of each seed) that `summary` writes.
        column: Name of the score.
        groups: Columns whose values must be equal in all rows of a group, such as the task.
    """
    families: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        families.setdefault(tuple(row.get(name) for name in groups), []).append(row)
    for family in families.values():
        first, *others = [row.get(f"{column} of seeds") or [] for row in family]
        corrected = [None, *holm([welch(first, other) for other in others])]
        for row, p in zip(family, corrected, strict=True):
            row["p"] = None if p is None else round(p, 4)


def welch(first: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Welch's t-test.

    The result is None if a sample has fewer than two values, or if the test is undefined because each sample repeats a
    value of its own. It is 1 if all values of both samples are equal.
    """
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
