"""Scores of classification and regression, as GLUE has them, and what a constant output gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn import metrics

Metric = Callable[[ArrayLike, ArrayLike], float]


def accuracy(found: ArrayLike, wanted: ArrayLike) -> float:
    """The part that is right."""
    return float(metrics.accuracy_score(wanted, found))


def f1(found: ArrayLike, wanted: ArrayLike) -> float:
    """Of class 1, as for QQP and MRPC; 0 where neither side has it."""
    return float(metrics.f1_score(wanted, found, zero_division=0.0))


def matthews(found: ArrayLike, wanted: ArrayLike) -> float:
    """Matthews' correlation coefficient, as for CoLA; 0 where one side is constant."""
    return float(metrics.matthews_corrcoef(wanted, found))


def pearson(found: ArrayLike, wanted: ArrayLike) -> float:
    """Of numbers, as for STS-B; 0 where one side is constant, which has no correlation."""
    return _correlation(stats.pearsonr, found, wanted)


def spearman(found: ArrayLike, wanted: ArrayLike) -> float:
    """The same of ranks."""
    return _correlation(stats.spearmanr, found, wanted)


def _correlation(of: Any, found: ArrayLike, wanted: ArrayLike) -> float:
    if min(np.ptp(np.asarray(side)) for side in (found, wanted)) == 0:
        return 0.0
    return float(of(found, wanted)[0])


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
    """The names, checked.

    Raises:
        ValueError: unknown ones, or those of the other kind of task.
    """
    known = [name for name in METRICS if (name in OF_NUMBERS) == regression]
    for name in names:
        if name not in known:
            kind = "regression" if regression else "classification"
            raise ValueError(f"--metrics: {name!r} is no score of {kind}; there are: {', '.join(known)}")
    return list(names)


def constants(name: str, train: Sequence[Any], wanted: Sequence[Any]) -> tuple[Any, float]:
    """The constant output that scores best on the training targets, and what it scores.

    Of accuracy it is the majority's; a constant has no correlation: the mean stands for it, with 0.
    """
    if name in OF_NUMBERS:
        return float(np.mean(np.asarray(train, dtype=float))), 0.0
    labels = sorted(set(train), key=lambda label: (-list(train).count(label), label))
    best = max(labels, key=lambda label: METRICS[name]([label] * len(train), train))
    return best, METRICS[name]([best] * len(wanted), wanted)


def margin(name: str, rows: int, constant: float) -> float:
    """How far above a constant a score has to be: two standard errors.

    Of a correlation those of answers that have nothing to do with the targets, which are above 0 half of the time; of
    other scores those of the constant's own, which other rows of the same kind would not have.

    Args:
        constant: what the constant output scores.
    """
    if name in CORRELATIONS:
        return 2 / math.sqrt(max(rows - 1, 1))
    error = math.sqrt(constant * (1 - constant) / max(rows, 1))
    # F1 of always 1 is 2 p / (1 + p), p the part of class 1: p's error times the slope
    return 2 * error * ((2 - constant) / math.sqrt(2) if name == "f1" else 1)
