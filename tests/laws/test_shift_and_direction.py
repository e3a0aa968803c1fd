"""Test law 7: `shift_invariant` and `directional` describe correctly what an encoding depends on."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention import Projected
from fairseq_posenc.attention.formula import logits as logits_of_layer
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case, claims, in_turn
from .compare import differ
from .scene import EOS, Scene, attend_all, batch_of, embedded, expose, positions_of

LENGTH = 7
FAR = 1200  # FIRE depends on the distance alone up to a threshold of about 512


def logits_of(stack: Stack, x: Tensor, positions: Positions, rows: int) -> Tensor:
    """Return the unmasked logits of the last queries, [L, B, h, rows, K], for inputs without positions."""
    x = stack.pos.embed(x, positions)
    late = replace(positions, query_length=rows)
    logits_by_layer = []
    for block, tensors in zip(stack.layers, stack.pos.per_layer(late), strict=True):
        call = block.self_attn.view.at(late, tensors).with_inputs(x)
        raw_q, raw_k = block.self_attn.project_query(x[:, -rows:]), block.self_attn.project_key(x)
        q, k = call.project_q(raw_q), call.project_k(raw_k)
        logits_by_layer.append(logits_of_layer(Projected(q, k, raw_k, raw_q, raw_k), call))
    return torch.stack(logits_by_layer)


def depends_on_distance_only(case: Case, length: int = LENGTH, rows: int = LENGTH) -> bool:
    """Return whether equal contents give logits that are constant along each diagonal."""
    stack = Scene(queries=length).stack(case)
    tokens = torch.full((1, length), EOS + 1)
    with torch.no_grad():
        logits = logits_of(stack, embedded(tokens, stack.shape.dim), positions_of(tokens, stack), rows)
    here, next_ = logits[..., :-1, :-1], logits[..., 1:, 1:]
    if case.causal:
        here, next_ = here.tril(length - rows), next_.tril(length - rows)
    return not differ(here, next_)


def is_mirrored(case: Case) -> bool:
    """Return whether the reversed input gives the reversed output, so that directions are not distinguished.

    The outputs of a decoder depend on earlier keys only, so its logits are compared, which later keys have too.
    """
    stack = expose(Scene(queries=LENGTH).stack(case))
    tokens, x, there = batch_of(stack, [LENGTH, LENGTH])
    back = positions_of(tokens.flip(1), stack)
    back = replace(
        back,
        segments=None if there.segments is None else there.segments.flip(1),
        cls_column=None if there.cls_column is None else LENGTH - 1 - there.cls_column,
    )
    with torch.no_grad():
        if case.causal:
            logits, reversed_ = logits_of(stack, x, there, LENGTH), logits_of(stack, x.flip(1), back, LENGTH)
            return not differ(reversed_.flip(-2, -1), logits)
        forward, backward = attend_all(stack, x, there), attend_all(stack, x.flip(1), back)
    return not differ(backward.flip(2), forward)


def check_shift(case: Case) -> None:
    """Check that `shift_invariant` is correct."""
    declared = case.capabilities.shift_invariant
    invariant = depends_on_distance_only(case)
    if invariant and not declared:
        invariant = depends_on_distance_only(case, FAR, rows=2)
    assert invariant == declared, f"declares shift_invariant={declared}, which it is not"


def check_direction(case: Case) -> None:
    """Check that `directional` is correct."""
    declared = case.capabilities.directional
    assert is_mirrored(case) != declared, f"declares directional={declared}, which it is not"


@pytest.mark.parametrize("case", in_turn(lambda case: "compress" not in case.hooks, claims))
def test_shift_invariance_as_declared(case: Case) -> None:
    check_shift(case)


# In a decoder, `logn` multiplies the logits by a factor of the query's position, on which directions do not depend.
@pytest.mark.parametrize("case", in_turn(lambda case: not (case.causal and "row_factor" in case.hooks), claims))
def test_direction_as_declared(case: Case) -> None:
    check_direction(case)
