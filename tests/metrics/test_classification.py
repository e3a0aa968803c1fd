"""Test scores of classification and regression, their constant outputs and their margins, by hand."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.metrics.classification import METRICS, constants, margin, named

BY_HAND = tomllib.loads(Path(__file__).with_name("by_hand.toml").read_text("utf-8"))


@pytest.mark.parametrize(("name", "outputs", "targets", "score"), BY_HAND["classification"])
def test_scores_by_hand(name: str, outputs: list[Any], targets: list[Any], score: str) -> None:
    assert METRICS[name](outputs, targets) == pytest.approx(float(Fraction(score)))


@pytest.mark.parametrize(("name", "train", "targets", "constant", "score"), BY_HAND["constants"])
def test_the_best_constant_is_chosen_on_the_training_targets(
    name: str, train: list[Any], targets: list[Any], constant: float, score: str
) -> None:
    assert constants(name, train, targets) == (constant, pytest.approx(float(Fraction(score))))


@pytest.mark.parametrize(("name", "rows", "constant", "expected"), BY_HAND["margins"])
def test_margins_by_hand(name: str, rows: int, constant: float, expected: str) -> None:
    assert margin(name, rows, constant) == pytest.approx(float(expected))


def test_scores_suit_the_task() -> None:
    assert named(["f1", "matthews"], regression=False) == ["f1", "matthews"]
    assert named(["pearson"], regression=True) == ["pearson"]
    with pytest.raises(
        ValueError, match=r"pearson: classification has no score of this name\. Choose from accuracy, f1, m"
    ):
        named(["accuracy", "pearson"], regression=False)
    with pytest.raises(ValueError, match=r"f1: regression has no score of this name\. Choose from pearson, spearman"):
        named(["f1"], regression=True)
