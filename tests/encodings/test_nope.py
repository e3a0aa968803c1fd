"""NoPE: without positions a decoder still tells them apart, and an encoder does not (METHODS.md 2.1)."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.encodings import StackShape
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

TOKENS = torch.tensor([[3, 5, 5, 5, 5, 5]])  # a start, then the same word again and again


def states(causal: bool, tokens: torch.Tensor) -> torch.Tensor:
    """[T, d] of the last layer."""
    torch.manual_seed(0)
    table = torch.randn(9, 16, dtype=torch.float64)
    stack = Stack("none", None, StackShape(2, 2, 16, 8, causal=causal)).double().eval()
    where = Positions.of_tokens(tokens, pad=1, causal=causal)
    with torch.no_grad():
        return stack(table[tokens], where)[0][0]


def test_a_decoder_tells_the_same_word_apart_by_its_position() -> None:
    """The start weighs less the more words follow it: the mask itself says how far it is."""
    same_word = states(True, TOKENS)[1:]
    gaps = (same_word[:, None] - same_word[None]).norm(dim=-1) + torch.eye(5) * 9
    assert gaps.min() > 1e-3


def test_an_encoder_does_not() -> None:
    same_word = states(False, TOKENS)[1:]
    torch.testing.assert_close(same_word, same_word[:1].expand(5, -1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
def test_only_a_decoder_sees_the_order(causal: bool) -> None:
    tokens, order = torch.tensor([[3, 5, 6, 7, 8]]), torch.tensor([0, 3, 1, 2, 4])
    moved = (states(causal, tokens[:, order]) - states(causal, tokens)[order]).abs().max()
    assert moved > 1e-3 if causal else moved < 1e-12
