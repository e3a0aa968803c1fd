"""Test that the parameters of an encoding get gradients even if all other parameters are frozen."""

from __future__ import annotations

import pytest
import torch

from .cases import Case, in_turn, options_once, without_options
from .compare import assert_close
from .scene import Scene, embedded, padded, positions_of, use_path


def gradients(case: Case, path: str, training: bool) -> dict[str, torch.Tensor | None]:
    """Return the gradients of the encoding's parameters while all other parameters are frozen."""
    stack = Scene().stack(case).train(training)
    use_path(stack, path)
    for name, parameter in stack.named_parameters():
        parameter.requires_grad_(name.startswith("pos."))
    tokens = padded([6, 4], 6)
    out = stack(embedded(tokens, stack.shape.dim), positions_of(tokens, stack))[0]
    if out.requires_grad:
        out.square()[..., 0].sum().backward()
    return {name: p.grad for name, p in stack.named_parameters() if p.requires_grad}


def check_frozen(case: Case, training: bool) -> None:
    """Check that the chosen path gives the same gradients as the explicit path."""
    expected = gradients(case, "explicit", training)
    for name, gradient in gradients(case, "auto", training).items():
        assert gradient is not None, f"{name} has no gradient"
        assert bool(gradient.any()), f"{name} has a gradient of zeros"
        wanted = expected[name]
        assert wanted is not None
        assert_close(gradient, wanted, 1e-9, name)


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_an_encoding_alone_can_be_tuned(case: Case) -> None:
    for training in (False, True):
        check_frozen(case, training)
