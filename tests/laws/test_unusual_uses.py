"""Test laws 28 and 29: unusual uses change nothing.

Empty batches, single tokens, 32-bit ids and tensors with other strides are ordinary inputs, and torch.func computes the
gradients of each sample as a loop over the samples does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from . import broken
from .cases import Case, in_turn, options_once, without_options
from .compare import assert_close
from .scene import Scene, batch_of, embedded, normal, padded, positions_of, use_path

PATHS = ("explicit", "auto")


def output(stack: Stack, x: Tensor, positions: Positions, path: str) -> Tensor:
    use_path(stack, path)
    with torch.no_grad():
        out: Tensor = stack(x, positions)[0]
    return out


def check_empty_batch(case: Case, path: str, training: bool) -> None:
    """Check that a batch without samples gives an output without samples, and gradients of zeros."""
    stack = Scene().stack(case).train(training)
    tokens = padded([5, 3], 5)[:0]
    x = embedded(tokens, stack.shape.dim)
    assert output(stack, x, positions_of(tokens, stack), path).shape == x.shape
    stack(x, positions_of(tokens, stack))[0].sum().backward()
    for name, parameter in stack.named_parameters():
        assert parameter.grad is None or not parameter.grad.any(), f"{name} gets a gradient from no samples"


def check_unusual(case: Case, path: str) -> None:
    """Check that other integer types and strides, and a single token, change nothing."""
    stack = Scene().stack(case)
    tokens, x, positions = batch_of(stack)
    expected = output(stack, x, positions, path)
    strided = x.transpose(0, 1).contiguous().transpose(0, 1)
    assert not strided.is_contiguous()
    assert_close(output(stack, strided, positions, path), expected, 1e-12, "other strides of the input")
    wide = tokens.repeat_interleave(2, 1)[:, ::2]
    assert_close(output(stack, x, positions_of(wide, stack), path), expected, 1e-12, "other strides of the ids")
    assert_close(output(stack, x, positions_of(tokens.int(), stack), path), expected, 1e-12, "32-bit ids")
    if positions.segments is not None:
        short = replace(positions, segments=positions.segments.int())
        assert_close(output(stack, x, short, path), expected, 1e-12, "32-bit segments")
    first = tokens[:, :1]
    assert output(stack, x[:, :1], positions_of(first, stack), path).isfinite().all()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_empty_batches_other_types_and_strides_change_nothing(case: Case, path: str) -> None:
    for training in (False, True):
        check_empty_batch(case, path, training)
    check_unusual(case, path)


def test_an_encoding_that_needs_a_sample_is_caught() -> None:
    with pytest.raises(IndexError):
        check_empty_batch(Case("broken", cls=broken.ReadsTheFirstSample), "explicit", training=False)


# -- gradients of each sample ------------------------------------------------------------------------------

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
