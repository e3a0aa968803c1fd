"""Compare both forms of DeBERTa with Hugging Face's DeBERTa-v2."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import (
    DIM,
    HEAD_DIM,
    HEADS,
    LAYER,
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

MODULE = MODELS + "deberta_v2.modeling_deberta_v2"
N = 12


def peer_of(*, longest: int = N, buckets: int = -1, shared: bool = False) -> nn.Module:
    """Return the peer; its table is an argument, so it is stored as an attribute."""
    module = oracle(MODULE)
    config = module.DebertaV2Config(
        hidden_size=DIM,
        num_attention_heads=HEADS,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        max_relative_positions=longest,
        position_buckets=buckets,
        share_att_key=shared,
    )
    torch.manual_seed(0)
    peer = module.DisentangledSelfAttention(config)
    for parameter in peer.parameters():
        nn.init.normal_(parameter, std=0.2)
    peer.table = nn.Parameter(torch.randn(2 * (buckets if buckets > 0 else longest), DIM))
    return peer.double().eval().requires_grad_(False)


def of_peer(peer: nn.Module) -> Peer:
    """Run the peer, whose mask is true at allowed keys."""

    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        allowed = ~mask.isinf().expand(len(x), 1, -1, -1)
        out, weights = peer(x, allowed, output_attentions=True, rel_embeddings=peer.table)
        return out, weights

    return run


def mine_of(peer: nn.Module, args: str) -> Mine:
    """Return our layer with the content projections of the peer."""
    mine = Mine("deberta", args, max_length=N)
    mine.copy(peer.query_proj, peer.key_proj, peer.value_proj)
    return mine


def as_original(peer: nn.Module, args: str = "") -> Mine:
    """Copy the rows in the peer's order and the projections of the layer."""
    mine = mine_of(peer, f"form=original,{args}")
    mine.encoding.weight.copy_(peer.table)
    if "share_att_key" not in args:
        for ours, theirs in (("key", peer.pos_key_proj), ("query", peer.pos_query_proj)):
            getattr(mine.encoding, f"{ours}_weight")[LAYER - 1] = theirs.weight
            getattr(mine.encoding, f"{ours}_bias")[LAYER - 1] = theirs.bias
    return mine


FORMS = [
    ("", {}),
    ("clip=4", {"longest": 4}),
    ("share_att_key=true", {"shared": True}),
    ("buckets=8", {"buckets": 8}),
    ("buckets=4,clip=7,share_att_key=true", {"buckets": 4, "longest": 7, "shared": True}),
]


@pytest.mark.parametrize(("args", "sizes"), FORMS, ids=[args or "plain" for args, _ in FORMS])
@both_directions
def test_deberta_v2_is_the_original(causal: bool, args: str, sizes: dict[str, int]) -> None:
    peer = peer_of(**sizes)
    check_same(as_original(peer, args), of_peer(peer), ROUNDED, causal=causal)


def test_deberta_v2_tells_mistakes() -> None:
    """The mistakes are a mirrored table, a shifted table, and exchanged terms."""
    peer = peer_of()
    mirrored, shifted, exchanged = (as_original(peer) for _ in range(3))
    mirrored.encoding.weight.copy_(peer.table.flip(0))
    shifted.encoding.weight.copy_(peer.table.roll(1, 0))
    for part, (key, query) in {
        "weight": (peer.pos_key_proj.weight, peer.pos_query_proj.weight),
        "bias": (peer.pos_key_proj.bias, peer.pos_query_proj.bias),
    }.items():
        getattr(exchanged.encoding, f"key_{part}")[LAYER - 1] = query
        getattr(exchanged.encoding, f"query_{part}")[LAYER - 1] = key
    for mine in (mirrored, shifted, exchanged):
        assert differs(mine, of_peer(peer))


def test_deberta_v2_has_our_buckets() -> None:
    from fairseq_posenc.encodings.deberta_original import log_bucket

    module, x = oracle(MODULE), torch.arange(-511, 512)
    for buckets, longest in ((256, 512), (8, 12), (4, 7), (64, 512)):
        inside = x[x.abs() < longest]
        theirs = module.make_log_bucket_position(inside, buckets, longest)
        assert torch.equal(log_bucket(inside, buckets, longest), theirs.long())


def give(mine: Mine, peer: nn.Module) -> None:
    """Write our small table and matrices into the peer. Its rows run over i - j and it has one more, -n.

    The first D columns of its table hold a, and every head's block of a projection is W transposed.
    """
    deberta = mine.encoding
    peer.table.zero_()
    peer.table[1:, :HEAD_DIM] = mine.table[0].flip(0)
    for projection, matrix in ((peer.pos_key_proj, deberta.w_r), (peer.pos_query_proj, deberta.w_t)):
        projection.bias.zero_()
        projection.weight.zero_()
        projection.weight[:, :HEAD_DIM] = matrix[LAYER - 1, 0].t().repeat(HEADS, 1)


@both_directions
def test_the_papers_form_is_a_case_of_deberta_v2(causal: bool) -> None:
    peer = peer_of()
    mine = mine_of(peer, "")
    give(mine, peer)
    check_same(mine, of_peer(peer), ROUNDED, causal=causal)
    mine.encoding.w_r.copy_(mine.encoding.w_t)
    assert differs(mine, of_peer(peer), causal=causal), "exchanged matrices show"
