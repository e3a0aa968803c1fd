"""Test laws 14 and 23: what is kept between layers and steps is computed seldom, and is never stale.

Evaluation uses the current parameters, and a copy of a model uses its own parameters. Shared values are computed once
per forward pass and, while a model decodes, seldom.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn

from fairseq_posenc.core import factors, relative, tables
from fairseq_posenc.encodings import deberta, deberta_original, segments, t5, tupe, xl
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case, in_last_direction, in_turn, options_once, without_options
from .compare import assert_close, assert_finite, differ
from .scene import batch_of, drawn, new_caches, observed, positions_of, use_path

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
    assert_close(output(twin, 9), before, 0.0, "the copy")
    in_place(twin.pos)
    assert_close(output(stack, 9), before, 0.0, "the other one")
    changed = output(twin, 9)
    assert differ(changed, before) == bool(list(twin.pos.parameters())), "the copy does not read its own parameters"
    in_place(stack)
    assert_close(output(twin, 9), changed, 0.0, "the other one")
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


# -- shared work -------------------------------------------------------------------------------------------

LAYERS = 3


def run_once(case: Case) -> None:
    """Run a forward of three layers."""
    stack = drawn(case.stack(case.shape(layers=LAYERS))).train()
    stack(*batch_of(stack)[1:])


ONCE_A_FORWARD = [
    (Case("shaw"), Positions, "forbidden"),
    (Case("shaw", causal=True), Positions, "_column_delta"),
    (Case("raffel"), Positions, "distances"),
    (Case("t5", {"share": "none"}), t5, "bucket"),
    (Case("deberta", {"form": "original", "buckets": 4}), deberta.Deberta, "_all_rows"),
    (Case("diet-abs"), factors.FactoredBias, "_product"),
    (Case("tupe", {"share": "layer-wise"}), tupe, "_products"),
    (Case("tupe", {"form": "original"}), tupe, "_products"),
    (Case("segments"), segments.Segments, "_one_hot"),
    (Case("m4", {"clip": 2}), tables, "_clipped"),
]
KEPT_IN_DECODING = [
    (Case("diet-abs", causal=True), factors.FactoredBias, "_product"),
    (Case("t5", causal=True), t5, "bucket"),
    (Case("deberta", causal=True), deberta.PaperDeberta, "project"),
    (Case("deberta", {"form": "original"}, causal=True), deberta_original.OriginalDeberta, "project"),
    (Case("tupe", causal=True), tupe.Tupe, "_product"),
    (Case("tupe", {"share": "layer-wise"}, causal=True), tupe.Tupe, "_product"),
    (Case("xl", causal=True), xl.XL, "_projected"),
    (Case("gcdf", causal=True), xl.XL, "_projected"),
]


@pytest.mark.parametrize(("case", "owner", "name"), ONCE_A_FORWARD, ids=str)
def test_work_is_done_once_a_forward(case: Case, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = observed(monkeypatch, owner, name)
    run_once(case)
    assert len(calls) == 1


def test_work_that_each_layer_does_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = observed(monkeypatch, relative.SharedBias, "bias")
    run_once(Case("raffel"))
    assert len(calls) == LAYERS


@pytest.mark.parametrize(("case", "owner", "name"), KEPT_IN_DECODING, ids=str)
def test_what_is_made_of_parameters_is_kept_while_a_model_decodes(
    case: Case, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value is computed for lengths 1, 4, 10 and 16, which is the limit of some encodings."""
    stack = drawn(case.stack(case.shape(layers=LAYERS)))
    tokens, x, _ = batch_of(stack, [14, 9])
    caches, calls = new_caches(stack), observed(monkeypatch, owner, name)
    with torch.no_grad():
        for end in range(1, 15):
            positions = positions_of(tokens[:, :end], stack, cached=end - 1)
            stack(x[:, end - 1 : end], positions, caches=caches)
    assert len(calls) <= 4
