"""Test laws 3, 4 and 28: samples do not depend on their batch, and a query without keys gives zeros.

Empty batches, single tokens, 32-bit ids and tensors with other strides are ordinary inputs.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairseq_posenc.stack import Stack

from .cases import Case, in_turn, options_once, without_options
from .compare import assert_close, assert_finite
from .scene import PAD, Scene, attend_all, batch_of, embedded, expose, outcome, padded, positions_of, run, use_path

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


def check_padding(case: Case, side: str = "left", path: str = "explicit") -> None:
    """Check this for a batch without padding or with padding on either side."""
    check_alone(Scene(queries=9).stack(case), padded(LENGTHS, 8, side), path)


def check_empty_rows(case: Case, side: str = "left", path: str = "explicit") -> None:
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
    assert_close(out[:, 1], torch.zeros_like(out[:, 1]), 0.0, "a sample of pads")
    if case.causal and side == "left":
        assert_close(out[:, 2, :3], torch.zeros_like(out[:, 2, :3]), 0.0, "pads at the start")
    assert_close(out[:, [0, 2]], without, ROUNDING, "the other samples")


def check_empty_batch(case: Case, path: str = "explicit", *, training: bool = False) -> None:
    """Check that a batch without samples gives an output without samples, and gradients of zeros."""
    stack = Scene().stack(case).train(training)
    tokens = padded([5, 3], 5)[:0]
    x = embedded(tokens, stack.shape.dim)
    assert run(stack, tokens, path).shape == x.shape
    for name, result in outcome(stack, stack(x, positions_of(tokens, stack))[0]).items():
        assert not result.any(), f"{name} from no samples"


def check_unusual(case: Case, path: str) -> None:
    """Check that other integer types and strides, and a single token, change nothing."""
    stack = Scene().stack(case)
    tokens, x, positions = batch_of(stack)
    expected = run(stack, tokens, path)
    for what, other in (("strides", tokens.repeat_interleave(2, 1)[:, ::2]), ("32 bits", tokens.int())):
        assert_close(run(stack, other, path), expected, ROUNDING, f"ids of other {what}")
    strided, segments = x.transpose(0, 1).contiguous().transpose(0, 1), positions.segments
    assert not strided.is_contiguous()
    short = replace(positions, segments=None if segments is None else segments.int())
    with torch.no_grad():
        assert_close(stack(strided, short)[0], expected, ROUNDING, "other strides of the input, or 32-bit segments")
    assert run(stack, tokens[:, :1], path).isfinite().all()


@pytest.mark.parametrize("case", in_turn(now=without_options))
def test_a_sample_is_the_same_alone_and_in_a_batch(case: Case) -> None:
    for side, path in itertools.product(("none", "right", "left"), PATHS):
        check_padding(case, side, path)


@pytest.mark.parametrize("case", in_turn(now=without_options))
def test_a_row_that_sees_nothing_gives_zeros(case: Case) -> None:
    for side, path in itertools.product(("right", "left"), PATHS):
        check_empty_rows(case, side, path)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_empty_batches_other_types_and_strides_change_nothing(case: Case, path: str) -> None:
    for training in (False, True):
        check_empty_batch(case, path, training=training)
    check_unusual(case, path)
