"""The losses that are kept of every recipe's preset smoke are complete, and a small change of one is noticed.

The runs themselves are compared by tests that need them anyway: test_glue_runs.py, test_pretrain_runs.py and
test_squad_runs.py, and for all recipes test_recipes_killed.py.
"""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import support_curves


@pytest.mark.parametrize("recipe", support_curves.RECIPES)
def test_every_recipe_has_curves(recipe: str) -> None:
    kept = support_curves.stored(recipe)
    losses = [loss for kinds in kept.values() for points in kinds.values() for _, loss in points]
    assert len(losses) >= 4
    assert all(0 < loss < 20 for loss in losses)


def test_a_change_in_the_fourth_digit_is_noticed() -> None:
    kept = support_curves.stored("demo")
    ours = copy.deepcopy(kept)
    point = next(iter(ours.values()))["train"][0]
    point[1] *= 1.0002  # the last digit that fairseq prints
    assert not support_curves.differences(ours, kept)
    point[1] *= 1.002
    (line,) = support_curves.differences(ours, kept)
    assert "train loss of update" in line


def test_missing_updates_are_noticed(tmp_path: Path) -> None:
    kept = support_curves.stored("demo")
    assert support_curves.differences({}, kept)
    with pytest.raises(AssertionError, match="losses are not those of tests/recipes/curves"):
        support_curves.check("demo", tmp_path)
