"""Compare T5 with Hugging Face's T5."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import (
    CPU,
    DIM,
    HEAD_DIM,
    HEADS,
    MODELS,
    Mine,
    Peer,
    Problem,
    Way,
    both_dtypes,
    difference,
    differs,
    oracle,
    tolerance,
    ways,
)
from torch import Tensor, nn

from fairseq_posenc.positions import Positions

SMALL = {"buckets": 8, "max_distance": 20}
LONG = 40  # columns: more than max_distance
decoder_or_encoder = pytest.mark.parametrize("decoder", [True, False], ids=["decoder", "encoder"])


def t5(dtype: torch.dtype, decoder: bool) -> nn.Module:
    module = oracle(MODELS + "t5.modeling_t5")
    config = module.T5Config(
        d_model=DIM,
        d_kv=HEAD_DIM,
        num_heads=HEADS,
        is_decoder=decoder,
        relative_attention_num_buckets=SMALL["buckets"],
        relative_attention_max_distance=SMALL["max_distance"],
    )
    torch.manual_seed(0)
    peer = module.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    assert peer.state_dict()["relative_attention_bias.weight"].shape == (SMALL["buckets"], HEADS)
    return peer.to(dtype).eval().requires_grad_(False)


def as_t5(peer: nn.Module, dtype: torch.dtype, decoder: bool) -> Mine:
    args = ",".join(f"{name}={value}" for name, value in SMALL.items())
    mine = Mine("t5", f"content_scale=one,{args}", dtype=dtype, max_length=LONG, causal=decoder, bias=False)
    mine.copy(peer.q, peer.k, peer.v, peer.o)
    mine.table.copy_(peer.relative_attention_bias.weight.t())
    return mine


def of_t5(peer: nn.Module) -> Peer:
    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        columns = torch.arange(x.shape[1])
        outputs = peer(x, mask, cache_position=columns, output_attentions=True)
        return outputs[0], outputs[-1]

    return run


@both_dtypes
@ways()
def test_t5(way: Way, dtype: torch.dtype) -> None:
    """Causal attention uses the buckets of a decoder, other attention those of an encoder."""
    peer = t5(dtype, way.causal)
    problem = Problem.of(way, dtype, keys=LONG)
    assert difference(as_t5(peer, dtype, way.causal), of_t5(peer), problem) <= tolerance(dtype, keeps_double=False)


@decoder_or_encoder
def test_t5_tells_mistakes(decoder: bool) -> None:
    """The mistakes are a shifted table, a table with its halves exchanged, and the other kind of buckets."""
    peer = t5(torch.float64, decoder)
    for shift in (1, SMALL["buckets"] // 2):
        mine = as_t5(peer, torch.float64, decoder)
        mine.table.copy_(mine.table.roll(shift, -1))
        assert differs(mine, of_t5(peer), causal=decoder, keys=LONG)
    assert differs(as_t5(peer, torch.float64, not decoder), of_t5(peer), causal=decoder, keys=LONG)


def test_t5_tells_a_divided_content() -> None:
    peer = t5(torch.float64, decoder=False)
    mine = as_t5(peer, torch.float64, False)
    divided = Mine("t5", "buckets=8,max_distance=20", max_length=LONG, bias=False)
    divided.copy(peer.q, peer.k, peer.v, peer.o)
    divided.table.copy_(mine.table)
    peer.q.weight *= 4  # T5's small initial content would hide a wrong scale
    for ours in (mine, divided):
        ours.attention.q_proj.weight *= 4
    assert differs(divided, of_t5(peer), keys=LONG)
    assert not differs(mine, of_t5(peer), keys=LONG)


@pytest.mark.parametrize("buckets", [32, 8])
@decoder_or_encoder
def test_t5_buckets_of_every_distance(decoder: bool, buckets: int) -> None:
    module = oracle(MODELS + "t5.modeling_t5")
    mine = Mine("t5", f"buckets={buckets}", max_length=600, causal=decoder)
    mine.table.copy_(torch.arange(buckets).expand(HEADS, -1))
    where = Positions(600, 600, CPU, causal=decoder)
    ours = mine.call(where).additive(torch.empty(0), None)[0, 1]
    theirs = module.T5Attention._relative_position_bucket(where.delta, not decoder, buckets, 128)
    assert theirs.unique().numel() == buckets - (not decoder)  # an encoder does not use the first bucket for the right
    assert torch.equal(ours.long(), theirs)
