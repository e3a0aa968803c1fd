"""Test law 28: torch.func computes the gradients of each sample as a loop over the samples does."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from . import broken
from .cases import Case, in_turn, options_once, without_options
from .compare import assert_close
from .scene import Scene, normal, padded, positions_of

SAMPLES, LENGTH = 3, 6


def check_per_sample(case: Case, training: bool) -> None:
    """Check that `vmap` of `grad` gives each parameter the gradients of a loop."""
    stack = Scene(queries=LENGTH).stack(case).train(training)
    positions = positions_of(padded([LENGTH], LENGTH), stack)
    samples = normal(SAMPLES, LENGTH, stack.shape.dim, generator=torch.Generator().manual_seed(1))
    parameters = dict(stack.named_parameters())

    def loss(values: Mapping[str, Tensor], sample: Tensor) -> Tensor:
        out: Tensor = functional_call(stack, dict(values), (sample[None], positions))[0]
        return out.square()[..., 0].sum()

    together = vmap(grad(loss), in_dims=(None, 0))(parameters, samples)
    for number, sample in enumerate(samples):
        stack.zero_grad()
        loss(parameters, sample).backward()
        for name, parameter in stack.named_parameters():
            alone = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            assert_close(together[name][number], alone, 1e-9, f"{name} of sample {number}")


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_gradients_of_each_sample_equal_a_loop(case: Case) -> None:
    for training in (False, True):
        check_per_sample(case, training)


def test_an_encoding_that_reads_single_samples_is_caught() -> None:
    with pytest.raises(RuntimeError, match="data-dependent"):
        check_per_sample(Case("broken", cls=broken.ReadsTheFirstSample), training=True)
