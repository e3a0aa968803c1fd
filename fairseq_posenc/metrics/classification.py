"""Compute scores of classification and regression, as in GLUE, and the scores of a constant output."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.extras import extra
from ..core.refusal import InputError

Metric = Callable[[ArrayLike, ArrayLike], float]


def accuracy(outputs: ArrayLike, targets: ArrayLike) -> float:
    """Return the share of correct outputs."""
    return float(_sklearn("accuracy").accuracy_score(targets, outputs))


def f1(outputs: ArrayLike, targets: ArrayLike) -> float:
    """Return the F1 score of class 1, as for QQP and MRPC; 0 if neither outputs nor targets contain it."""
    return float(_sklearn("F1").f1_score(targets, outputs, zero_division=0.0))


def matthews(outputs: ArrayLike, targets: ArrayLike) -> float:
    """Return Matthews' correlation coefficient, as for CoLA; 0 if outputs or targets are constant."""
    return float(_sklearn("Matthews' correlation").matthews_corrcoef(targets, outputs))


def pearson(outputs: ArrayLike, targets: ArrayLike) -> float:
    """Return Pearson's correlation coefficient, as for STS-B; 0 if it is undefined (constant outputs or targets)."""
    return _correlation("pearsonr", outputs, targets)


def spearman(outputs: ArrayLike, targets: ArrayLike) -> float:
    """Return Spearman's rank correlation coefficient; 0 if outputs or targets are constant."""
    return _correlation("spearmanr", outputs, targets)


def _sklearn(use: str) -> Any:
    return extra("sklearn.metrics", use)


def _correlation(statistic: str, outputs: ArrayLike, targets: ArrayLike) -> float:
    if min(np.ptp(np.asarray(side)) for side in (outputs, targets)) == 0:
        return 0.0
    stats = extra("scipy.stats", "a correlation")
    return float(getattr(stats, statistic)(outputs, targets)[0])


METRICS: Mapping[str, Metric] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews": matthews,
    "pearson": pearson,
    "spearman": spearman,
}
OF_NUMBERS = ("pearson", "spearman")
CORRELATIONS = (*OF_NUMBERS, "matthews")


def named(names: Sequence[str], *, regression: bool) -> list[str]:
    """Return the names of scores, after checking that the scores suit the kind of task.

    Raises:
        ValueError: A name is unknown, or the score does not exist for this kind of task.
    """
    known = [name for name in METRICS if (name in OF_NUMBERS) == regression]
    for name in names:
        if name not in known:
            kind = "regression" if regression else "classification"
            raise InputError(f"--metrics {name}: {kind} has no score of this name. Choose from {', '.join(known)}.")
    return list(names)


def constants(name: str, train: Sequence[Any], targets: Sequence[Any]) -> tuple[Any, float]:
    """Return the constant output that scores best on the training targets, and its score on `targets`.

    For accuracy, the constant is the majority class. For Pearson's and Spearman's correlation, the constant is the mean
    of the targets, and the score is 0, because a constant correlates with nothing.
    """
    if name in OF_NUMBERS:
        return float(np.mean(np.asarray(train, dtype=float))), 0.0
    labels = sorted(set(train), key=lambda label: (-list(train).count(label), label))
    best = max(labels, key=lambda label: METRICS[name]([label] * len(train), train))
    return best, METRICS[name]([best] * len(targets), targets)


def margin(name: str, rows: int, constant: float) -> float:
    """Return by how much a score must exceed a constant output's score to count as better: two standard errors.

    The standard error of a correlation is that of two unrelated variables, because a constant output has the
    correlation 0. The standard error of any other score is that of the constant output's score on `rows` random items.

    Args:
        name: Name of the score.
        rows: Number of items.
        constant: Score of the constant output.
    """
    if name in CORRELATIONS:
        return 2 / math.sqrt(max(rows - 1, 1))
    error = math.sqrt(constant * (1 - constant) / max(rows, 1))
    # If the output is always 1, F1 is 2 p / (1 + p), where p is the share of class 1. So F1's error is p's times the
    # slope.
    return 2 * error * ((2 - constant) / math.sqrt(2) if name == "f1" else 1)
