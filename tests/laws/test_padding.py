"""Test laws 3 and 4: the output of a sample does not depend on its batch, and a query without keys gives zeros."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from fairseq_posenc.stack import Stack

from .cases import Case, in_turn, without_options
from .compare import assert_close, assert_finite, assert_same
from .scene import PAD, Scene, attend_all, embedded, expose, outcome, padded, positions_of, run, use_path

PATHS = ["explicit", "auto"]
LENGTHS = [7, 4, 1, 6]
ROUNDING = 1e-12


def check_alone(stack: Stack, tokens: Tensor, path: str = "auto") -> None:
    """Check that each sample of a batch gives the same output alone, without padding."""
    together = run(stack, tokens, path)
    for sample, row in zip(tokens, together, strict=True):
        real = sample.ne(PAD)
        alone = run(stack, sample[real][None], path)[0]
        assert_close(row[real], alone, ROUNDING, f"a sample of {len(alone)} tokens")


def check_padding(case: Case, side: str, path: str) -> None:
    """Check this for a batch without padding or with padding on either side."""
    check_alone(Scene(queries=9).stack(case), padded(LENGTHS, 8, side), path)


def check_empty_rows(case: Case, side: str, path: str) -> None:
    """Check that rows of padding only give zeros, and that there is no NaN anywhere."""
    tokens = padded([6, 0, 3], 6, side)
    stack = expose(Scene().stack(case))
    use_path(stack, path)
    x = embedded(tokens, stack.shape.dim).requires_grad_(path == "explicit")
    with torch.set_grad_enabled(path == "explicit"):
        out = attend_all(stack, x, positions_of(tokens, stack))
        without = attend_all(stack, x[[0, 2]], positions_of(tokens[[0, 2]], stack))
    for name, tensor in outcome(stack, out, input=x).items():
        assert_finite(tensor, name)
    assert_same(out[:, 1], torch.zeros_like(out[:, 1]), "a sample of pads")
    if case.causal and side == "left":
        assert_same(out[:, 2, :3], torch.zeros_like(out[:, 2, :3]), "pads at the start")
    assert_close(out[:, [0, 2]], without, ROUNDING, "the other samples")


@pytest.mark.parametrize("case", in_turn(now=without_options))
def test_a_sample_is_the_same_alone_and_in_a_batch(case: Case) -> None:
    for side, path in itertools.product(("none", "right", "left"), PATHS):
        check_padding(case, side, path)


@pytest.mark.parametrize("case", in_turn(now=without_options))
def test_a_row_that_sees_nothing_gives_zeros(case: Case) -> None:
    for side, path in itertools.product(("right", "left"), PATHS):
        check_empty_rows(case, side, path)
