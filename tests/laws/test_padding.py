"""Test laws 3 and 4: the output of a sample does not depend on its batch, and a query without keys gives zeros."""

from __future__ import annotations

import itertools

import pytest
import torch

from .cases import Case, in_turn, without_options
from .compare import assert_close, assert_finite, assert_same
from .scene import PAD, Scene, attend_all, embedded, expose, padded, positions_of, run, use_path

PATHS = ["explicit", "auto"]
LENGTHS = [7, 4, 1, 6]
ROUNDING = 1e-12


def check_padding(case: Case, side: str, path: str) -> None:
    """Check that each sample of a batch gives the same output alone, without padding or with padding on either side."""
    stack = Scene(queries=9).stack(case)
    tokens = padded(LENGTHS, 8, side)
    together = run(stack, tokens, path)
    for sample, row in zip(tokens, together, strict=True):
        real = sample.ne(PAD)
        alone = run(stack, sample[real][None], path)[0]
        assert_close(row[real], alone, ROUNDING, f"a sample of {len(alone)} tokens")


def check_empty_rows(case: Case, side: str, path: str) -> None:
    """Check that rows of padding only give zeros, and that there is no NaN anywhere."""
    lengths = [6, 0, 3]
    tokens = padded(lengths, 6, side)
    stack = expose(Scene().stack(case))
    positions = positions_of(tokens, stack)
    use_path(stack, path)
    x = embedded(tokens, stack.shape.dim).requires_grad_(path == "explicit")
    with torch.set_grad_enabled(path == "explicit"):
        out = attend_all(stack, x, positions)
    assert_finite(out, "output")
    assert_same(out[:, 1], torch.zeros_like(out[:, 1]), "a sample of pads")
    if case.causal and side == "left":
        assert_same(out[:, 2, :3], torch.zeros_like(out[:, 2, :3]), "pads at the start")
    without = attend_all(stack, x[[0, 2]], positions_of(tokens[[0, 2]], stack))
    assert_close(out[:, [0, 2]], without, ROUNDING, "the other samples")
    if path == "explicit":
        out.square().sum().backward()
        gradients = {"input": x.grad, **{name: p.grad for name, p in stack.named_parameters()}}
        for name, gradient in gradients.items():
            assert_finite(torch.zeros(()) if gradient is None else gradient, f"gradient of {name}")


@pytest.mark.parametrize("case", in_turn(now=without_options))
def test_a_sample_is_the_same_alone_and_in_a_batch(case: Case) -> None:
    for side, path in itertools.product(("none", "right", "left"), PATHS):
        check_padding(case, side, path)


@pytest.mark.parametrize("case", in_turn(now=without_options))
def test_a_row_that_sees_nothing_gives_zeros(case: Case) -> None:
    for side, path in itertools.product(("right", "left"), PATHS):
        check_empty_rows(case, side, path)
