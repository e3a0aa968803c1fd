"""Compare ALiBi with x-transformers."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import CPU, KEYS, ROUNDED, Literal, Mine, both_directions, check_same, differs, oracle
from torch import Tensor

from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions

HEAD_DIM = 2
heads_8_and_12 = pytest.mark.parametrize("heads", [8, 12])


def x_transformers(heads: int, total: int | None = None) -> Tensor:
    """Return the bias [h, K, K]; its slopes are kept in float32."""
    return oracle("x_transformers.x_transformers").AlibiPositionalBias(heads, total)(KEYS, KEYS).double()


def mine_and(bias: Tensor) -> tuple[Mine, Literal]:
    mine = Mine("alibi", heads=len(bias), head_dim=HEAD_DIM)
    return mine, Literal(mine, lambda q, k: q @ k.mT * HEAD_DIM**-0.5 + bias)


@both_directions
@heads_8_and_12
def test_x_transformers(heads: int, causal: bool) -> None:
    check_same(*mine_and(x_transformers(heads)), ROUNDED, causal=causal)


@heads_8_and_12
def test_mistakes_show(heads: int) -> None:
    """The mistakes are a reward for distance, distances that are too large by 1, and reversed heads."""
    bias = x_transformers(heads)
    for wrong in (-bias, bias.roll(1, -1), bias.flip(0)):
        assert differs(*mine_and(wrong))


@pytest.mark.parametrize("penalised", [1, 3, 8])
def test_heads_without_a_penalty_are_those_of_x_transformers(penalised: int) -> None:
    mine = build("alibi", {"heads": penalised}, StackShape(1, 8, 16, KEYS))
    where = Positions(KEYS, KEYS, CPU)
    bias = mine.layer(1).at(where, mine.per_layer(where)[0]).additive(torch.empty(0), torch.empty(0))
    assert bias is not None
    torch.testing.assert_close(bias[0].double(), x_transformers(penalised, 8))
