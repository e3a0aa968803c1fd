"""Compare both forms of DeBERTa with Hugging Face's DeBERTa-v2."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import (
    DIM,
    HEAD_DIM,
    HEADS,
    KEYS,
    LAYER,
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

from fairseq_posenc.encodings.deberta_original import log_bucket

MODULE = MODELS + "deberta_v2.modeling_deberta_v2"
N = 12


def peer_of(dtype: torch.dtype, *, longest: int = N, buckets: int = -1, shared: bool = False) -> nn.Module:
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
    assert hasattr(peer, "pos_key_proj") != shared
    for parameter in peer.parameters():
        nn.init.normal_(parameter, std=0.2)
    peer.table = nn.Parameter(torch.randn(2 * (buckets if buckets > 0 else longest), DIM))
    return peer.to(dtype).eval().requires_grad_(False)


def of_peer(peer: nn.Module) -> Peer:
    """Run the peer, whose mask is true at allowed keys."""

    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        allowed = ~mask.isinf().expand(len(x), 1, -1, -1)
        out, weights = peer(x, allowed, output_attentions=True, rel_embeddings=peer.table)
        return out, weights

    return run


def content(mine: Mine, peer: nn.Module) -> Mine:
    mine.copy(peer.query_proj, peer.key_proj, peer.value_proj)
    return mine


def as_original(peer: nn.Module, dtype: torch.dtype, args: str = "") -> Mine:
    """Copy the rows in the peer's order and the projections of the layer."""
    mine = content(Mine("deberta", f"form=original,{args}", dtype=dtype, max_length=N), peer)
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
@ways()
def test_deberta_v2_is_the_original(way: Way, args: str, sizes: dict[str, int]) -> None:
    peer = peer_of(torch.float64, **sizes)
    found = difference(as_original(peer, torch.float64, args), of_peer(peer), Problem.of(way, torch.float64))
    assert found <= tolerance(torch.float64, keeps_double=False)


@pytest.mark.parametrize("mistake", ["mirrored", "shifted by one", "terms exchanged"])
def test_deberta_v2_tells_a_mistake(mistake: str) -> None:
    peer = peer_of(torch.float64)
    mine = as_original(peer, torch.float64)
    theirs = mine.encoding
    if mistake == "terms exchanged":
        for part in ("weight", "bias"):
            one, other = getattr(theirs, f"key_{part}").clone(), getattr(theirs, f"query_{part}").clone()
            getattr(theirs, f"key_{part}").copy_(other)
            getattr(theirs, f"query_{part}").copy_(one)
    else:
        table = theirs.weight.clone()
        theirs.weight.copy_(table.flip(0) if mistake == "mirrored" else table.roll(1, 0))
    assert differs(mine, of_peer(peer))


def test_deberta_v2_has_our_buckets() -> None:
    module, x = oracle(MODULE), torch.arange(-511, 512)
    for buckets, longest in ((256, 512), (8, 12), (4, 7), (64, 512)):
        inside = x[x.abs() < longest]
        theirs = module.make_log_bucket_position(inside, buckets, longest)
        assert torch.equal(log_bucket(inside, buckets, longest), theirs.long())


@both_dtypes
@ways()
def test_the_papers_form_is_a_case_of_deberta_v2(way: Way, dtype: torch.dtype) -> None:
    """The first D columns of its table hold a, and every head's block of a projection is W transposed."""
    peer = peer_of(dtype)
    mine = content(Mine("deberta", dtype=dtype, max_length=N), peer)
    give(mine, peer)
    assert difference(mine, of_peer(peer), Problem.of(way, dtype)) <= tolerance(dtype, keeps_double=False)


def give(mine: Mine, peer: nn.Module) -> None:
    """Write our small table and matrices into the peer. Its rows run over i - j and it has one more, -n."""
    deberta = mine.encoding
    peer.table.zero_()
    peer.table[1:, :HEAD_DIM] = mine.table[0].flip(0)
    for projection, matrix in ((peer.pos_key_proj, deberta.w_r), (peer.pos_query_proj, deberta.w_t)):
        projection.bias.zero_()
        projection.weight.zero_()
        projection.weight[:, :HEAD_DIM] = matrix[LAYER - 1, 0].t().repeat(HEADS, 1)


def test_the_papers_form_tells_exchanged_matrices() -> None:
    peer = peer_of(torch.float64)
    mine = content(Mine("deberta", max_length=N), peer)
    give(mine, peer)
    assert KEYS < N
    mine.encoding.w_r.copy_(mine.encoding.w_t)
    assert differs(mine, of_peer(peer))
