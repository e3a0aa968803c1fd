"""ALiBi against x-transformers and Bloom (METHODS.md section 10, oracles 12, 13)."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import Literal, Mine, Peer, Problem, Way, both_dtypes, difference, differs, oracle, tolerance, ways
from torch import Tensor, nn

from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")
HEAD_DIM = 2
heads_8_and_12 = pytest.mark.parametrize("heads", [8, 12])


def x_transformers(heads: int, dtype: torch.dtype) -> nn.Module:
    peer = oracle("x_transformers.x_transformers").AlibiPositionalBias(heads)
    assert peer.slopes.shape == (heads, 1, 1)
    return peer.to(dtype)


def mine_with(heads: int, dtype: torch.dtype = torch.float64) -> Mine:
    return Mine("alibi", dtype=dtype, heads=heads, head_dim=HEAD_DIM)


def attention_of(mine: Mine, bias: Tensor) -> Literal:
    return Literal(mine, lambda q, k: q @ k.mT * HEAD_DIM**-0.5 + bias)


@both_dtypes
@heads_8_and_12
@ways()
def test_x_transformers(way: Way, heads: int, dtype: torch.dtype) -> None:
    peer, mine = x_transformers(heads, dtype), mine_with(heads, dtype)
    problem = Problem.of(way, dtype, dim=heads * HEAD_DIM)
    # its slopes are made in Python's float64, then kept in float32
    found = difference(mine, attention_of(mine, peer(9, 9)), problem)
    assert found <= tolerance(dtype, keeps_double=heads == 8)


@heads_8_and_12
@pytest.mark.parametrize(("queries", "keys"), [(9, 9), (5, 9), (1, 9)])
@torch.no_grad()
def test_x_transformers_with_memory_offset(heads: int, queries: int, keys: int) -> None:
    peer, mine = x_transformers(heads, torch.float64), mine_with(heads)
    ours = mine.call(Positions(queries, keys, CPU)).additive(torch.empty(0), None)
    assert ours.shape == (1, heads, queries, keys)
    torch.testing.assert_close(ours[0], peer(queries, keys), rtol=0, atol=1e-6)
    if queries < keys:
        assert (ours[0] - peer(keys, keys)[:, :queries]).abs().max() > 1e-2


@heads_8_and_12
def test_mistakes_show(heads: int) -> None:
    """A reward for distance, a distance that is one too long, heads in the opposite order."""
    bias = x_transformers(heads, torch.float64)(9, 9)
    mine = mine_with(heads)
    assert not differs(mine, attention_of(mine, bias))
    for wrong in (-bias, bias.roll(1, -1), bias.flip(0)):
        assert differs(mine, attention_of(mine, wrong))


def bloom(mine: Mine, heads: int, factor: float = 1.0) -> Peer:
    """Bloom's slope * j: a row of it differs from ours by a constant, which the softmax does not see."""
    build = oracle("transformers.models.bloom.modeling_bloom").build_alibi_tensor
    assert build(torch.ones(1, 3), heads, torch.float32).shape == (heads, 1, 3)

    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        real = (mask[:, 0, -1] == 0).long()  # the last query sees all columns but the pads
        bias = build(real, heads, x.dtype).view(len(x), heads, 1, -1)
        return attention_of(mine, factor * bias)(x, mask)

    return run


@both_dtypes
@heads_8_and_12
@ways(causal=(True,))
def test_bloom(way: Way, heads: int, dtype: torch.dtype) -> None:
    mine = mine_with(heads, dtype)
    problem = Problem.of(way, dtype, dim=heads * HEAD_DIM)
    assert difference(mine, bloom(mine, heads), problem) <= 1e-6


@heads_8_and_12
def test_bloom_tells_mistakes(heads: int) -> None:
    """A reward for distance; and where a query sees to its right, the two are not the same."""
    mine = mine_with(heads)
    assert differs(mine, bloom(mine, heads, factor=-1.0), causal=True)
    assert differs(mine, bloom(mine, heads), causal=False)
