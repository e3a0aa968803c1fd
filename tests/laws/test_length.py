"""Test law 8: beyond the maximum length, an encoding equals its reference, or an error names the flag to change."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.core import compose

from .cases import LENGTH_FLAG, Case, claims, in_turn
from .compare import assert_close, assert_refused
from .literal import literal_all, literal_embed
from .scene import attend_all, batch_of, drawn, padded, positions_of, run

MAXIMUM, BEYOND = 8, 13


def check_beyond(case: Case) -> None:
    """Check that longer sequences equal the reference with one warning, or are refused if not declared."""
    stack = drawn(case.stack(case.shape(max_length=MAXIMUM)))
    limit = stack.pos.limit
    assert stack.pos.capabilities.extrapolates == (limit is None or limit > MAXIMUM), "the limit contradicts it"
    warnings: list[str] = []
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(compose.logger, "warning", lambda text, *args: warnings.append(text % args))
        run(stack, padded([MAXIMUM], MAXIMUM))
        assert not warnings, "a warning within the maximum length"
        if limit is not None:
            too_long = padded([limit + 1], limit + 1)
            assert_refused(lambda: positions_of(too_long, stack), case.spec, str(limit), LENGTH_FLAG)
        if limit is None or limit >= BEYOND:
            _, x, positions = batch_of(stack, [BEYOND, 10])
            expected = literal_all(stack, literal_embed(stack.pos, x, positions), positions)
            for _ in range(2):  # the warning must be logged only once
                assert_close(attend_all(stack, x, positions), expected, 1e-9, "beyond the maximum length")
            assert len(warnings) == 1, f"{len(warnings)} warnings instead of one"
            assert LENGTH_FLAG in warnings[0]


@pytest.mark.parametrize("case", in_turn(now=claims))
def test_beyond_the_maximum_length(case: Case) -> None:
    check_beyond(case)
