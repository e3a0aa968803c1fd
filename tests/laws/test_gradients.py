"""Test law 10: activation checkpointing changes no gradient, and each parameter accumulates once per backward pass."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Block, Stack

from .cases import Case, every, in_turn, options_once, without_options
from .compare import assert_close
from .scene import drawn, embedded, padded, positions_of

WAYS = ["plain", "checkpointed", "reentrant"]


@contextmanager
def accumulations(stack: Stack) -> Iterator[Counter[str]]:
    """Return how often each parameter of the encoding accumulates a gradient; DDP allows it once."""
    counts: Counter[str] = Counter()
    handles = [
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: counts.update([name]))
        for name, parameter in stack.pos.named_parameters()
    ]
    try:
        yield counts
    finally:
        for handle in handles:
            handle.remove()


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
    tokens = padded([6, 4], 6)
    x = embedded(tokens, stack.shape.dim).requires_grad_()
    with accumulations(stack) as counts:
        forward(stack, x, positions_of(tokens, stack), way, layers).square()[..., 0].sum().backward()
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
    plain = drawn(case.stack(case.shape(), checkpoint_activations=False)).train()
    saving = case.stack(case.shape(), checkpoint_activations=True)
    saving.load_state_dict(copy.deepcopy(plain.state_dict()))
    tokens = padded([6, 4], 6)
    results = []
    for stack in (plain, saving.train()):
        with accumulations(stack) as counts:
            output = stack(embedded(tokens, stack.shape.dim), positions_of(tokens, stack))[0]
            output.square()[..., 0].sum().backward()
        assert set(counts.values()) <= {1}, f"accumulated {counts}"
        results.append([output, *(p.grad for p in stack.parameters() if p.grad is not None)])
    for one, other in zip(*results, strict=True):
        assert_close(other, one, 1e-12, "checkpointed")


@pytest.mark.parametrize("case", every(options_once), ids=str)
def test_gradients_are_the_same_and_accumulate_once(case: Case) -> None:
    for layers in ((0, 1, 2), (1,)):
        check_gradients(case, layers)


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_the_stack_checkpoints_its_blocks(case: Case) -> None:
    check_stack_flag(case)
