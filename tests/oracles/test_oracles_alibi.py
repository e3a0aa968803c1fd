"""Compare ALiBi with x-transformers."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import Literal, Mine, Problem, Way, both_dtypes, difference, differs, oracle, tolerance, ways
from torch import Tensor

from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions

HEAD_DIM = 2
heads_8_and_12 = pytest.mark.parametrize("heads", [8, 12])


def x_transformers(heads: int, dtype: torch.dtype) -> Tensor:
    """Return the bias [h, K, K] of nine columns."""
    peer = oracle("x_transformers.x_transformers").AlibiPositionalBias(heads)
    assert peer.slopes.shape == (heads, 1, 1)
    return peer.to(dtype)(9, 9)


def mine_with(heads: int, dtype: torch.dtype = torch.float64) -> Mine:
    return Mine("alibi", dtype=dtype, heads=heads, head_dim=HEAD_DIM)


def attention_of(mine: Mine, bias: Tensor) -> Literal:
    return Literal(mine, lambda q, k: q @ k.mT * HEAD_DIM**-0.5 + bias)


@both_dtypes
@heads_8_and_12
@ways()
def test_x_transformers(way: Way, heads: int, dtype: torch.dtype) -> None:
    mine = mine_with(heads, dtype)
    problem = Problem.of(way, dtype, dim=heads * HEAD_DIM)
    # its slopes are made in Python's float64, then kept in float32
    found = difference(mine, attention_of(mine, x_transformers(heads, dtype)), problem)
    assert found <= tolerance(dtype, keeps_double=heads == 8)


@heads_8_and_12
def test_mistakes_show(heads: int) -> None:
    """The mistakes are a reward for distance, distances that are too large by 1, and reversed heads."""
    bias, mine = x_transformers(heads, torch.float64), mine_with(heads)
    assert not differs(mine, attention_of(mine, bias))
    for wrong in (-bias, bias.roll(1, -1), bias.flip(0)):
        assert differs(mine, attention_of(mine, wrong))


@pytest.mark.parametrize("penalised", [1, 3, 8])
def test_heads_without_a_penalty_are_those_of_x_transformers(penalised: int) -> None:
    peer = oracle("x_transformers.x_transformers").AlibiPositionalBias(penalised, 8)
    mine = build("alibi", {"heads": penalised}, StackShape(1, 8, 16, 9))
    where = Positions(9, 9, torch.device("cpu"))
    bias = mine.layer(1).at(where, mine.per_layer(where)[0]).additive(torch.empty(0), torch.empty(0))
    assert bias is not None
    torch.testing.assert_close(bias[0], peer(9, 9))
    with pytest.raises(ValueError, match="heads=9 is more than the number of heads, which is 8"):
        build("alibi", {"heads": 9}, StackShape(1, 8, 16, 9))
