"""Test NoPE: without positions, a decoder still sees the order of tokens; an encoder does not (Haviv et al. 2022)."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.encodings import StackShape
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack


def states(causal: bool, tokens: torch.Tensor) -> torch.Tensor:
    """Return the output of the last layer, [T, d]."""
    torch.manual_seed(0)
    table = torch.randn(9, 16, dtype=torch.float64)
    stack = Stack("none", None, StackShape(2, 2, 16, 8, causal=causal)).double().eval()
    where = Positions.of_tokens(tokens, pad=1, causal=causal)
    with torch.no_grad():
        return stack(table[tokens], where)[0][0]


@pytest.mark.parametrize("causal", [True, False])
def test_only_a_decoder_sees_the_order(causal: bool) -> None:
    tokens, order = torch.tensor([[3, 5, 6, 7, 8]]), torch.tensor([0, 3, 1, 2, 4])
    moved = (states(causal, tokens[:, order]) - states(causal, tokens)[order]).abs().max()
    assert moved > 1e-3 if causal else moved < 1e-12
