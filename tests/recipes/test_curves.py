"""A small change of the losses that are kept of every recipe's preset smoke is noticed.

test_laws.py compares the losses of all recipes, but that takes minutes.
"""

from __future__ import annotations

import pytest
import support_curves


@pytest.mark.parametrize(
    ("kept", "same", "other"),
    [
        (12.34, 12.35, 12.36),
        (6.558, 6.559, 6.56),
        (1.082, 1.081, 1.08),
        (0.268, 0.269, 0.27),
        (6.558, 6.558, float("nan")),
    ],
)
def test_a_change_of_the_fourth_digit_or_the_third_decimal_is_noticed(kept: float, same: float, other: float) -> None:
    """Only a change by one is let through: rounding may cause it."""
    assert not support_curves.differences({"x": same}, {"x": kept})
    assert support_curves.differences({"x": other, "y": 1.0}, {"x": kept}) == [
        "y: only in one of the runs",
        f"x: {other} instead of {kept}",
    ]
