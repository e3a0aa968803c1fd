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

from . import broken
from .cases import Case, in_turn, options_once, without_options
from .compare import assert_close
from .scene import Scene, batch_of, directed, embedded, normal, outcome, padded, positions_of, run


def check_empty_batch(case: Case, path: str, training: bool) -> None:
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
        assert_close(run(stack, other, path), expected, 1e-12, f"ids of other {what}")
    strided, segments = x.transpose(0, 1).contiguous().transpose(0, 1), positions.segments
    assert not strided.is_contiguous()
    short = replace(positions, segments=None if segments is None else segments.int())
    with torch.no_grad():
        assert_close(stack(strided, short)[0], expected, 1e-12, "other strides of the input, or 32-bit segments")
    assert run(stack, tokens[:, :1], path).isfinite().all()


@pytest.mark.parametrize("path", ["explicit", "auto"])
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
        return directed(functional_call(stack, dict(values), (sample[None], positions))[0])

    together = vmap(grad(loss), in_dims=(None, 0), randomness="same")(parameters, samples)
    for number, sample in enumerate(samples):
        alone = outcome(stack, stack(sample[None], positions)[0])
        for name in parameters:
            assert_close(together[name][number], alone[f"gradient of {name}"], 1e-9, f"{name} of sample {number}")


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_gradients_of_each_sample_equal_a_loop(case: Case) -> None:
    for training in (False, True):
        check_per_sample(case, training)


def test_an_encoding_that_reads_single_samples_is_caught() -> None:
    with pytest.raises(RuntimeError, match="data-dependent"):
        check_per_sample(Case("broken", cls=broken.ReadsTheFirstSample), training=True)
