"""Test scores of classification and regression, their constant outputs and their margins, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from fairseq_posenc.metrics.classification import METRICS, constants, margin, named


@pytest.mark.parametrize(
    ("name", "outputs", "targets", "score"),
    [
        ("accuracy", [1, 0, 1, 1], [1, 1, 1, 0], 0.5),
        ("f1", [1, 0, 1, 1], [1, 1, 1, 0], 2 / 3),  # precision and recall are 2/3
        ("f1", [0, 0], [0, 0], 0),
        ("matthews", [1, 1, 0, 0], [1, 1, 0, 1], 1 / 3**0.5),  # (2*1 - 0*1) / sqrt(2 * 3 * 1 * 2)
        ("matthews", [1, 1], [0, 1], 0),
        ("pearson", [1.0, 2.0, 4.0], [2.0, 4.0, 8.0], 1),
        ("pearson", [1.0, 1.0, 1.0], [2.0, 4.0, 8.0], 0),
        ("pearson", [2.0, 4.0, 8.0], [1.0, 1.0, 1.0], 0),
        ("spearman", [1.0, 2.0, 3.0], [9.0, 30.0, 10.0], 0.5),
        ("spearman", [1.0, 1.0, 1.0], [9.0, 30.0, 10.0], 0),
    ],
)
def test_scores_by_hand(name: str, outputs: list[Any], targets: list[Any], score: float) -> None:
    assert METRICS[name](outputs, targets) == pytest.approx(score)


@pytest.mark.parametrize(
    ("name", "train", "targets", "constant", "score"),
    [
        ("accuracy", [0, 1, 1], [1, 1, 0, 0, 1], 1, 0.6),
        ("accuracy", [0, 1], [1, 1, 0, 0, 1], 0, 0.4),  # the smaller label if both are equally frequent
        ("f1", [0, 0, 1], [1, 0, 1], 1, 0.8),  # the majority class would score 0
        ("matthews", [0, 1, 1], [1, 0], 1, 0),
        ("pearson", [1, 2, 6], [1, 2], 3, 0),
        ("spearman", [1, 2, 6], [1, 2], 3, 0),
    ],
)
def test_the_best_constant_is_chosen_on_the_training_targets(
    name: str, train: list[Any], targets: list[Any], constant: float, score: float
) -> None:
    assert constants(name, train, targets) == (constant, pytest.approx(score))


@pytest.mark.parametrize(
    ("name", "rows", "constant", "expected"),
    [
        ("accuracy", 100, 0.8, 0.08),  # 2 sqrt(0.8 * 0.2 / 100)
        ("accuracy", 0, 0.8, 0.8),
        ("f1", 100, 0.8, 0.08 * 1.2 / 2**0.5),
        ("matthews", 101, 0.0, 0.2),
        ("spearman", 1, 0.0, 2),
    ],
)
def test_margins_by_hand(name: str, rows: int, constant: float, expected: float) -> None:
    assert margin(name, rows, constant) == pytest.approx(expected)


def test_scores_suit_the_task() -> None:
    assert named(["f1", "matthews"], regression=False) == ["f1", "matthews"]
    assert named(["pearson"], regression=True) == ["pearson"]
    with pytest.raises(
        ValueError, match=r"pearson: classification has no score of this name\. Choose from accuracy, f1, m"
    ):
        named(["accuracy", "pearson"], regression=False)
    with pytest.raises(ValueError, match=r"f1: regression has no score of this name\. Choose from pearson, spearman"):
        named(["f1"], regression=True)
