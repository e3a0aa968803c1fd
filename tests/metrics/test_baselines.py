"""Test the constant output of question generation."""

from __future__ import annotations

import pytest

from fairseq_posenc.metrics import baselines


def test_the_best_constant_maximises_the_mean_score() -> None:
    assert baselines.best_constant([*["who is it"] * 9, "why"]) == "who is it"
    assert baselines.best_constant([*["ab"] * 9, "c"], "characters") == "ab"


def test_all_questions_count_if_there_are_few() -> None:
    assert sorted(baselines.best_constant(["who", "what"]).split()) == ["what", "who"]


def test_many_questions_are_sampled_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "MOST_QUESTIONS", 2)
    assert baselines.best_constant(["who", "what", "who", "what", "who"]) == "who"


def test_a_constant_needs_questions() -> None:
    with pytest.raises(ValueError, match="there are no training questions"):
        baselines.best_constant([])
