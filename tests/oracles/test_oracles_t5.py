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
    ROUNDED,
    Mine,
    Peer,
    both_directions,
    check_same,
    differs,
    oracle,
)
from torch import Tensor, nn

from fairseq_posenc.positions import Positions

SMALL = {"buckets": 8, "max_distance": 20}
LONG = 40  # columns: more than max_distance


def t5(decoder: bool) -> nn.Module:
    """Return T5's attention; queries are enlarged, because T5's small initial content would hide a wrong scale."""
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
    peer = peer.double().eval().requires_grad_(False)
    peer.q.weight *= 4
    return peer


def as_t5(peer: nn.Module, decoder: bool, scale: str = "one") -> Mine:
    args = ",".join(f"{name}={value}" for name, value in SMALL.items())
    mine = Mine("t5", f"content_scale={scale},{args}", max_length=LONG, causal=decoder, bias=False)
    mine.copy(peer.q, peer.k, peer.v, peer.o)
    mine.table.copy_(peer.relative_attention_bias.weight.t())
    return mine


def of_t5(peer: nn.Module) -> Peer:
    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        columns = torch.arange(x.shape[1])
        outputs = peer(x, mask, cache_position=columns, output_attentions=True)
        return outputs[0], outputs[-1]

    return run


@both_directions
def test_t5(causal: bool) -> None:
    """Causal attention uses the buckets of a decoder, other attention those of an encoder."""
    peer = t5(causal)
    check_same(as_t5(peer, causal), of_t5(peer), ROUNDED, causal=causal, keys=LONG)


@both_directions
def test_t5_tells_mistakes(causal: bool) -> None:
    """The mistakes are a shifted table, one with exchanged halves, the other buckets and a divided content."""
    peer = t5(causal)
    wrong = [as_t5(peer, not causal), as_t5(peer, causal, "head")]
    for shift in (1, SMALL["buckets"] // 2):
        wrong.append(as_t5(peer, causal))
        wrong[-1].table.copy_(wrong[-1].table.roll(shift, -1))
    for mine in wrong:
        assert differs(mine, of_t5(peer), causal=causal, keys=LONG)


@pytest.mark.parametrize("buckets", [32, 8])
@both_directions
def test_t5_buckets_of_every_distance(causal: bool, buckets: int) -> None:
    module = oracle(MODELS + "t5.modeling_t5")
    mine = Mine("t5", f"buckets={buckets}", max_length=600, causal=causal)
    mine.table.copy_(torch.arange(buckets).expand(HEADS, -1))
    where = Positions(600, 600, CPU, causal=causal)
    ours = mine.call(where).additive(torch.empty(0), None)[0, 1]
    theirs = module.T5Attention._relative_position_bucket(where.delta, not causal, buckets, 128)
    assert theirs.unique().numel() == buckets - (not causal)  # an encoder does not use the first bucket for the right
    assert torch.equal(ours.long(), theirs)
