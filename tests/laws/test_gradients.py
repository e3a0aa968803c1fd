"""Test law 10: activation checkpointing changes no gradient, and each parameter accumulates once per backward pass.

The parameters of an encoding also get their gradients if all other parameters are frozen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Block, Stack

from .cases import Case, in_turn, options_once, without_options
from .compare import assert_close
from .scene import Scene, batch_of, drawn, use_path

WAYS = ["plain", "checkpointed", "reentrant"]


def accumulations(stack: Stack) -> Counter[str]:
    """Return how often each parameter of the encoding will accumulate a gradient; DDP allows it once."""
    counts: Counter[str] = Counter()
    for name, parameter in stack.pos.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: counts.update([name]))
    return counts


def reentrant(block: Block, x: Tensor, positions: Positions, tensors: dict[str, dict[str, Tensor]]) -> Tensor:
    """Wrap a block in a reentrant checkpoint, as fairseq does."""

    def call(x: Tensor, *of_layer: Tensor) -> Tensor:
        left = iter(of_layer)
        return block(x, positions, {name: {key: next(left) for key in own} for name, own in tensors.items()})

    return checkpoint(call, x, *(tensor for own in tensors.values() for tensor in own.values()), use_reentrant=True)


def forward(stack: Stack, x: Tensor, positions: Positions, way: str, layers: Sequence[int]) -> Tensor:
    """Run only some layers of the stack, as LayerDrop does."""
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
    """Return the gradients of the input and of all parameters; each parameter must accumulate once."""
    stack.zero_grad()
    _, x, positions = batch_of(stack)
    x.requires_grad_()
    counts = accumulations(stack)
    forward(stack, x, positions, way, layers).square()[..., 0].sum().backward()
    for name, _ in stack.pos.named_parameters():
        assert counts[name] == 1, f"{way}: {name} accumulated {counts[name]} times"
    assert x.grad is not None
    return {"input": x.grad} | {name: p.grad.clone() for name, p in stack.named_parameters() if p.grad is not None}


def check_gradients(case: Case, layers: Sequence[int]) -> None:
    """Check that gradients are the same in every way of running the layers."""
    stack = drawn(case.stack(case.shape(layers=3))).train()
    expected = gradients(stack, "plain", layers)
    for way in WAYS[1:]:
        actual = gradients(stack, way, layers)
        assert actual.keys() == expected.keys()
        for name, gradient in expected.items():
            assert_close(actual[name], gradient, 1e-12, f"{way}: gradient of {name}")


def check_stack_flag(case: Case) -> None:
    """Check that Stack(checkpoint_activations=True) gives the same gradients as without it."""
    results = []
    for saving in (False, True):
        stack = drawn(case.stack(case.shape(), checkpoint_activations=saving)).train()
        counts = accumulations(stack)
        output = stack(*batch_of(stack)[1:])[0]
        output.square()[..., 0].sum().backward()
        assert set(counts.values()) <= {1}, f"accumulated {counts}"
        results.append([output, *(p.grad for p in stack.parameters() if p.grad is not None)])
    for one, other in zip(*results, strict=True):
        assert_close(other, one, 1e-12, "checkpointed")


def shares(case: Case) -> bool:
    """Return whether a case has default options, or layers share its tables in another way."""
    return without_options(case) or list(case.args) == ["share"]


@pytest.mark.parametrize("case", in_turn(options_once, shares))
def test_gradients_are_the_same_and_accumulate_once(case: Case) -> None:
    for layers in ((0, 1, 2), (1,)):
        check_gradients(case, layers)


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_the_stack_checkpoints_its_blocks(case: Case) -> None:
    check_stack_flag(case)


def gradients_alone(case: Case, path: str, training: bool) -> dict[str, Any]:
    """Return the gradients of the encoding's parameters while all other parameters are frozen."""
    stack = Scene().stack(case).train(training)
    use_path(stack, path)
    stack.layers.requires_grad_(False)
    out = stack(*batch_of(stack)[1:])[0]
    if out.requires_grad:
        out.square()[..., 0].sum().backward()
    return {name: p.grad for name, p in stack.pos.named_parameters()}


def check_frozen(case: Case, training: bool) -> None:
    """Check that the chosen path gives the same gradients as the explicit path."""
    expected = gradients_alone(case, "explicit", training)
    for name, gradient in gradients_alone(case, "auto", training).items():
        assert gradient is not None, f"{name} has no gradient"
        assert bool(gradient.any()), f"{name} has a gradient of zeros"
        assert_close(gradient, expected[name], 1e-9, name)


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_an_encoding_alone_can_be_tuned(case: Case) -> None:
    for training in (False, True):
        check_frozen(case, training)
