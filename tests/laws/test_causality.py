"""Test law 2: in a decoder, later tokens do not change earlier outputs by a single bit."""

from __future__ import annotations

import pytest

from .cases import Case, claims, in_turn
from .compare import assert_close, differ
from .scene import EOS, PAD, Scene, padded, run

PATHS = ["explicit", "auto"]


def check_causality(case: Case, path: str = "explicit") -> None:
    """Change words, sentence ends and padding from a column on, and compare the columns before it."""
    stack = Scene(queries=7).stack(case)
    tokens = padded([7, 7, 7], 7)
    before = run(stack, tokens, path)
    for cut in (1, 3, 6):
        for later in (EOS, 5, PAD):
            changed = tokens.clone()
            changed[:, cut:] = later
            after = run(stack, changed, path)
            assert_close(after[:, :cut], before[:, :cut], 0.0, f"columns before {cut}")
            assert later == PAD or differ(after[:, cut:], before[:, cut:]), "the change had no effect: a vain test"


@pytest.mark.parametrize("case", in_turn(lambda case: case.causal, claims))
def test_the_future_does_not_change_the_past(case: Case) -> None:
    for path in PATHS:
        check_causality(case, path)
