"""The losses that are kept of every recipe's preset smoke are complete, and a small change of one is noticed.

test_laws.py compares the losses of all recipes, but that takes minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import support_curves


@pytest.mark.parametrize("recipe", support_curves.RECIPES)
def test_every_recipe_has_curves(recipe: str) -> None:
    losses = support_curves.stored(recipe).values()
    assert len(losses) >= 4
    assert all(0 < loss < 20 for loss in losses)


@pytest.mark.parametrize(
    ("kept", "same", "other"),
    [
        (12.34, 12.35, 12.36),
        (6.558, 6.559, 6.56),
        (1.082, 1.083, 1.084),
        (1.082, 1.081, 1.08),
        (0.268, 0.269, 0.27),
        (6.558, 6.558, float("nan")),
    ],
)
def test_a_change_of_the_fourth_digit_or_the_third_decimal_is_noticed(kept: float, same: float, other: float) -> None:
    """Only a change by one is let through: rounding may cause it."""
    assert not support_curves.differences({"x": same}, {"x": kept})
    assert support_curves.differences({"x": other}, {"x": kept}) == [f"x: {other} instead of {kept}"]


def test_missing_updates_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="losses are not those of tests/recipes/curves"):
        support_curves.check("demo", tmp_path)
