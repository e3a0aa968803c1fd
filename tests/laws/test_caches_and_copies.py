"""Test law 14: evaluation uses the current parameters, and a copy of a model uses its own parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import nn

from fairseq_posenc.stack import Stack

from .cases import Case, in_last_direction, in_turn, options_once, without_options
from .compare import assert_close, assert_finite, assert_same, differ
from .scene import Scene, batch_of, drawn, new_caches, padded, positions_of, run, use_path

ROUNDING = 1e-5  # of float32
LENGTHS = (5, 9, 4, 1)


def output(stack: Stack, length: int) -> torch.Tensor:
    """Return the output in the stack's dtype and, for a decoder, the output of the last decoding step."""
    tokens, x, where = batch_of(stack, [length, length])
    use_path(stack, "explicit")
    with torch.no_grad():
        whole = stack(x, where)[0]
        if not stack.shape.causal or length == 1:
            return whole
        caches = new_caches(stack)
        stack(x[:, :-1], positions_of(tokens[:, :-1], stack), caches=caches)
        step = stack(x[:, -1:], positions_of(tokens, stack, cached=length - 1), caches=caches)[0]
        return torch.cat([whole, step], 1)


def fresh(case: Case, like: Stack) -> Stack:
    """Return a new stack with the same weights, whose caches are empty."""
    stack = case.stack(like.shape).to(next(like.parameters()).dtype)
    stack.load_state_dict(like.state_dict())
    return stack.eval()


def compare_with_fresh(case: Case, stack: Stack, what: str, lengths: Sequence[int] = LENGTHS) -> None:
    """Compare with a fresh stack at growing and shrinking lengths."""
    for length in lengths:
        assert_close(output(stack, length), output(fresh(case, stack), length), ROUNDING, f"{what}: length {length}")


def in_place(module: nn.Module) -> None:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))


def fused_step(stack: Stack) -> None:
    """Make an optimizer step whose writes torch does not count, with gradients from an earlier backward."""
    versions = [parameter._version for parameter in stack.parameters()]
    for parameter in stack.parameters():
        parameter.grad = torch.randn_like(parameter)
    torch.optim.Adam(stack.parameters(), lr=1.0, fused=True).step()
    assert versions == [parameter._version for parameter in stack.parameters()], "torch counts: nothing is tested"


def replaced_parameters(stack: Stack) -> None:
    for module in stack.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(torch.randn_like(parameter)))


def swapped(stack: Stack) -> None:
    """Write through `.data` in evaluation mode, as libraries swap averaged weights in; torch counts no such write."""
    for parameter in stack.parameters():
        parameter.data.copy_(torch.randn_like(parameter))


def written_behind(stack: Stack) -> None:
    """Write through `.data` between train() and eval(), as fairseq's fp16 optimizer does."""
    swapped(stack.train())
    stack.eval()


#: Changes that are noticed even amid decoding, and all changes, which are noticed when decoding begins anew.
AT_ONCE = [in_place, fused_step, replaced_parameters]
CHANGES = [*AT_ONCE, swapped, written_behind, nn.Module.double]


def check_evaluation(case: Case, change: Callable[[Stack], None]) -> None:
    """Check that after a change of the parameters a stack gives what a fresh stack gives."""
    torch.manual_seed(0)
    stack = drawn(case.stack(case.shape())).float()
    output(stack, 9)
    change(stack)
    compare_with_fresh(case, stack, change.__name__, [9])


def check_amid_decoding(case: Case, change: Callable[[Stack], None]) -> None:
    """Check that after a change the next step of decoding is that of a fresh stack with the same keys and values."""
    torch.manual_seed(0)
    stack = drawn(case.stack(case.shape())).float()
    tokens, x, _ = batch_of(stack, [9, 9])
    caches = new_caches(stack)

    @torch.no_grad()
    def step(stack: Stack) -> torch.Tensor:
        return stack(x[:, -1:], positions_of(tokens, stack, cached=8), caches=copy.deepcopy(caches))[0]

    with torch.no_grad():
        stack(x[:, :-1], positions_of(tokens[:, :-1], stack), caches=caches)
    step(stack)
    change(stack)
    assert_close(step(stack), step(fresh(case, stack)), ROUNDING, f"{change.__name__} amid decoding")


def check_inference_mode(case: Case) -> None:
    """Check that values which were cached in inference mode can be used in training."""
    stack = drawn(case.stack(case.shape()))
    with torch.inference_mode():
        output(stack, 9)
    _, x, _ = batch_of(stack, [9, 9])
    x.requires_grad_()
    for mode in (False, True):
        stack.train(mode)(x, batch_of(stack, [9, 9])[2])[0][..., 0].sum().backward()
    assert_finite(torch.zeros(()) if x.grad is None else x.grad, "gradient")


def check_lengths(case: Case) -> None:
    """Check that lengths may grow and shrink."""
    compare_with_fresh(case, drawn(case.stack(case.shape())).float(), "at first")


def check_copy(case: Case) -> None:
    """Check that a model and its copy, as EMA makes it, share no numbers."""
    torch.manual_seed(0)
    stack = drawn(case.stack(case.shape()))
    before = output(stack, 9)
    twin = copy.deepcopy(stack)
    assert_same(output(twin, 9), before, "the copy")
    in_place(twin.pos)
    assert_same(output(stack, 9), before, "the other one")
    changed = output(twin, 9)
    assert differ(changed, before) == bool(list(twin.pos.parameters())), "the copy does not read its own parameters"
    in_place(stack)
    assert_same(output(twin, 9), changed, "the other one")
    compare_with_fresh(case, twin, "the changed one", [9])


@pytest.mark.parametrize("case", in_turn(without_options, in_last_direction))
def test_evaluation_is_never_stale(case: Case) -> None:
    for change in CHANGES:
        check_evaluation(case, change)
    for change in AT_ONCE if case.causal else ():
        check_amid_decoding(case, change)


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_a_copy_uses_its_own_weights(case: Case) -> None:
    check_copy(case)


@pytest.mark.parametrize("case", in_turn(options_once, without_options))
def test_training_may_follow_inference_mode_and_lengths_may_grow_and_shrink(case: Case) -> None:
    check_inference_mode(case)
    check_lengths(case)


def test_a_composition_loads_what_its_member_learned() -> None:
    alone, both = Scene().stack(Case("shaw")), Scene().stack(Case("learned+shaw"))
    report = both.load_state_dict(alone.state_dict(), strict=False)
    assert report.missing_keys == ["pos.learned.weight"]
    assert not report.unexpected_keys
    nn.init.zeros_(both.pos.learned.weight)
    tokens = padded([6, 4], 6)
    assert_close(run(both, tokens), run(alone, tokens), 1e-12, "with a table of zeros")
