"""Test law 7: `shift_invariant` and `directional` describe correctly what an encoding depends on."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairseq_posenc.attention import formula
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

from .cases import Case, claims, in_turn
from .compare import differ
from .scene import EOS, Scene, attend_all, batch_of, embedded, expose, observed, positions_of, use_path

LENGTH = 7
FAR = Scene(queries=1200, heads=1, layers=1)  # FIRE depends on the distance alone up to a threshold of about 512


def logits_of(stack: Stack, x: Tensor, positions: Positions) -> Tensor:
    """Return the unmasked logits, [L, B, h, Q, K], for inputs without positions."""
    use_path(stack, "explicit")
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        logits = observed(patch, formula, "logits")
        attend_all(stack, x, positions)
    return torch.stack(logits)


def depends_on_distance_only(case: Case, scene: Scene) -> bool:
    """Return whether equal contents give logits that are constant along each diagonal."""
    stack = scene.stack(case)
    tokens = torch.full((1, scene.queries), EOS + 1)
    logits = logits_of(stack, embedded(tokens, stack.shape.dim), positions_of(tokens, stack))
    here, next_ = logits[..., :-1, :-1], logits[..., 1:, 1:]
    if case.causal:
        here, next_ = here.tril(), next_.tril()
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
    if case.causal:
        return not differ(logits_of(stack, x.flip(1), back).flip(-2, -1), logits_of(stack, x, there))
    with torch.no_grad():
        return not differ(attend_all(stack, x.flip(1), back).flip(2), attend_all(stack, x, there))


def check_shift(case: Case) -> None:
    """Check that `shift_invariant` is correct."""
    declared = case.capabilities.shift_invariant
    invariant = depends_on_distance_only(case, Scene(queries=LENGTH))
    if invariant and not declared:
        invariant = depends_on_distance_only(case, FAR)
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
