"""Test laws 10 and 29: activation checkpointing changes no gradient, and each parameter accumulates once in a step.

The parameters of an encoding also get their gradients if all other parameters are frozen, and torch.func computes the
gradients of each sample as a loop over the samples does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.utils.checkpoint import checkpoint

from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Block, Stack

from .cases import Case, in_turn, options_once, without_options
from .compare import assert_all_close, assert_close
from .scene import Scene, batch_of, directed, drawn, normal, outcome, padded, positions_of, use_path


def reentrant(block: Block, x: Tensor, positions: Positions, tensors: dict[str, dict[str, Tensor]]) -> Tensor:
    """Wrap a block in a reentrant checkpoint, as fairseq does."""

    def call(x: Tensor, *of_layer: Tensor) -> Tensor:
        left = iter(of_layer)
        return block(x, positions, {name: {key: next(left) for key in own} for name, own in tensors.items()})

    return checkpoint(call, x, *(tensor for own in tensors.values() for tensor in own.values()), use_reentrant=True)


def forward(stack: Stack, x: Tensor, positions: Positions, way: str, layers: Sequence[int]) -> Tensor:
    """Run only some layers of the stack, as LayerDrop does."""
    stack.checkpoint_activations = way == "by the stack"
    if stack.checkpoint_activations:
        return stack(x, positions)[0]
    x = stack.pos.embed(x, positions)
    handed = stack.pos.per_layer(positions)
    for i in layers:
        block, tensors = stack.layers[i], handed[i]
        if way == "reentrant":
            x = reentrant(block, x, positions, tensors)
        elif way == "checkpointed":
            x = checkpoint(block, x, positions, tensors, use_reentrant=False)
        else:
            x = block(x, positions, tensors)
    return x


def gradients(stack: Stack, way: str, layers: Sequence[int]) -> dict[str, Tensor]:
    """Return the output and all gradients; DDP allows each parameter of the encoding to accumulate its own once."""
    counts: Counter[str] = Counter()
    for name, parameter in stack.pos.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: counts.update([name]))
    _, x, positions = batch_of(stack)
    results = outcome(stack, forward(stack, x.requires_grad_(), positions, way, layers), input=x)
    for name, _ in stack.pos.named_parameters():
        assert counts[name] == 1, f"{way}: {name} accumulated {counts[name]} times"
    return results


def check_gradients(case: Case, layers: Sequence[int] = (0, 1, 2)) -> None:
    """Check that gradients are the same in every way of running the layers."""
    stack = drawn(case.stack(case.shape(layers=3))).train()
    expected = gradients(stack, "plain", layers)
    for way in ("checkpointed", "reentrant", *(["by the stack"] if len(layers) == 3 else [])):
        assert_all_close(gradients(stack, way, layers), expected, 1e-12, way)


def shares(case: Case) -> bool:
    """Return whether a case has default options, or layers share its tables in another way."""
    return without_options(case) or list(case.args) == ["share"]


@pytest.mark.parametrize("case", in_turn(options_once, shares))
def test_gradients_are_the_same_and_accumulate_once(case: Case) -> None:
    for layers in ((0, 1, 2), (1,)):
        check_gradients(case, layers)


def check_frozen(case: Case, *, training: bool = False) -> None:
    """Check the gradients of the encoding's parameters while all others are frozen: both paths have the same."""
    stack = Scene().stack(case).train(training)
    stack.layers.requires_grad_(False)
    _, x, positions = batch_of(stack)
    results = {}
    for path in ("explicit", "auto"):
        use_path(stack, path)
        results[path] = outcome(stack, stack(x, positions)[0])
    assert_all_close(results["auto"], results["explicit"], 1e-9, "alone")
    for name, _ in stack.pos.named_parameters(prefix="pos"):
        assert results["auto"].get(f"gradient of {name}", torch.zeros(())).any(), f"{name} has no gradient"


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_an_encoding_alone_can_be_tuned(case: Case) -> None:
    for training in (False, True):
        check_frozen(case, training=training)


def check_per_sample(case: Case, *, training: bool = True) -> None:
    """Check that `vmap` of `grad` gives each parameter the gradients of a loop."""
    stack = Scene().stack(case).train(training)
    positions = positions_of(padded([6], 6), stack)
    samples = normal(3, 6, stack.shape.dim, generator=torch.Generator().manual_seed(1))
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
        check_per_sample(case, training=training)
