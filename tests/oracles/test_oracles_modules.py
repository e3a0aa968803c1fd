"""Compare our attention with whole modules of Hugging Face: BERT, NEZHA, DeBERTa-v2, T5 and XLNet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from oracle_ways import (
    CPU,
    DIM,
    EXACT,
    HEAD_DIM,
    HEADS,
    KEYS,
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

from fairseq_posenc.encodings.deberta_original import log_bucket
from fairseq_posenc.positions import Positions

N = 12


def drawn(peer: nn.Module) -> nn.Module:
    """Return a peer with large random parameters in float64, so that a wrong one makes a difference."""
    torch.manual_seed(0)
    for parameter in peer.parameters():
        nn.init.normal_(parameter, std=0.2)
    return peer.double().eval().requires_grad_(False)


def bert(spec: str, kind: str) -> tuple[Mine, Peer]:
    """Return our layer and BERT's. BERT's table runs over i - j: ours is its mirror image."""
    module = oracle(MODELS + "bert.modeling_bert")
    sizes = {"hidden_size": DIM, "num_attention_heads": HEADS, "max_position_embeddings": N}
    peer = drawn(module.BertSelfAttention(module.BertConfig(**sizes, position_embedding_type=kind)))
    # transformers 5 accepts the same option, but silently returns a model with absolute positions.
    assert "distance_embedding.weight" in peer.state_dict()
    mine = Mine(spec)
    mine.copy(peer.query, peer.key, peer.value)
    mine.table[0] = peer.distance_embedding.weight.flip(0)
    return mine, lambda x, mask: peer(x, mask, output_attentions=True)


def nezha(clip: int) -> tuple[Mine, Peer]:
    """Return our layer and NEZHA's, which clips, and adds to the values too.

    The peer holds [K, K, D] for all pairs: row 0 has the distances 0 to K - 1, and column 0 has the others.
    """
    module = oracle(MODELS + "deprecated.nezha.modeling_nezha")
    sizes = {"hidden_size": DIM, "num_attention_heads": HEADS, "max_position_embeddings": KEYS}
    peer = drawn(module.NezhaSelfAttention(module.NezhaConfig(**sizes, max_relative_position=clip)))
    mine = Mine("shaw", f"clip={clip},values=true")
    mine.copy(peer.query, peer.key, peer.value)
    pairs = peer.relative_positions_encoding(KEYS)
    mine.table[0] = torch.cat([pairs[: clip + 1, 0].flip(0), pairs[0, 1 : clip + 1]])
    mine.encoding.value_weight[-1, 0] = mine.table[0]
    return mine, lambda x, mask: peer(x, mask, output_attentions=True)


def deberta(args: str = "", longest: int = N, buckets: int = -1) -> tuple[Mine, Peer, nn.Module]:
    """Return our layer with the content projections of DeBERTa-v2, and the latter, whose table is an argument."""
    module = oracle(MODELS + "deberta_v2.modeling_deberta_v2")
    config = module.DebertaV2Config(
        hidden_size=DIM,
        num_attention_heads=HEADS,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        max_relative_positions=longest,
        position_buckets=buckets,
        share_att_key="share_att_key=true" in args,
    )
    peer = module.DisentangledSelfAttention(config)
    peer.table = nn.Parameter(torch.empty(2 * (buckets if buckets > 0 else longest), DIM))
    drawn(peer)
    mine = Mine("deberta", args, max_length=N)
    mine.copy(peer.query_proj, peer.key_proj, peer.value_proj)

    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        allowed = ~mask.isinf().expand(len(x), 1, -1, -1)
        return peer(x, allowed, output_attentions=True, rel_embeddings=peer.table)

    return mine, run, peer


def deberta_original(args: str, **sizes: int) -> tuple[Mine, Peer]:
    """Return both with the rows in the peer's order and the projections of the layer."""
    mine, run, peer = deberta(f"form=original,{args}", **sizes)
    mine.encoding.weight.copy_(peer.table)
    if "share_att_key" not in args:
        for ours, theirs in (("key", peer.pos_key_proj), ("query", peer.pos_query_proj)):
            getattr(mine.encoding, f"{ours}_weight")[LAYER - 1] = theirs.weight
            getattr(mine.encoding, f"{ours}_bias")[LAYER - 1] = theirs.bias
    return mine, run


def deberta_paper() -> tuple[Mine, Peer]:
    """Write our small table and matrices into the peer. Its rows run over i - j and it has one more, -n.

    The first D columns of its table hold a, and every head's block of a projection is W transposed.
    """
    mine, run, peer = deberta()
    peer.table.zero_()
    peer.table[1:, :HEAD_DIM] = mine.table[0].flip(0)
    for projection, matrix in ((peer.pos_key_proj, mine.encoding.w_r), (peer.pos_query_proj, mine.encoding.w_t)):
        projection.bias.zero_()
        projection.weight.zero_()
        projection.weight[:, :HEAD_DIM] = matrix[LAYER - 1, 0].t().repeat(HEADS, 1)
    return mine, run


def xlnet(args: str, clamp: int = -1) -> tuple[Mine, Peer]:
    """Return our layer and XLNet's, before the residual connection, with its sinusoids, which are float32.

    XLNet takes [T, B, d], and a mask with ones at hidden keys.
    """
    module = oracle(MODELS + "xlnet.modeling_xlnet")
    sizes = {"vocab_size": 8, "d_model": DIM, "n_head": HEADS, "n_layer": 1, "d_inner": 8, "dropout": 0.0}
    model = module.XLNetModel(module.XLNetConfig(**sizes, clamp_len=clamp))
    peer, distances = drawn(model.layer[0].rel_attn), model.relative_positional_encoding(KEYS, KEYS).double()
    mine = Mine("xl", args, bias=False)
    mine.copy(*(_linear(getattr(peer, name).flatten(1).t()) for name in "qkv"), _linear(peer.o.flatten(1)))
    for name, value in {"weight": peer.r.flatten(1).t(), "u": peer.r_w_bias, "v": peer.r_r_bias}.items():
        getattr(mine.encoding, name)[LAYER - 1] = value

    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        h = x.transpose(0, 1)
        q, k, v = (torch.einsum("ibh,hnd->ibnd", h, getattr(peer, name)) for name in "qkv")
        forbidden = mask.isinf().to(x.dtype).expand(len(x), -1, -1, -1).permute(2, 3, 0, 1)
        positions = torch.einsum("ibh,hnd->ibnd", distances, peer.r).expand(-1, len(x), -1, -1)
        out, weights = peer.rel_attn_core(q, k, v, positions, attn_mask=forbidden, output_attentions=True)
        return torch.einsum("ibnd,hnd->bih", out, peer.o), weights.permute(2, 3, 0, 1)

    return mine, run


def _linear(weight: Tensor) -> nn.Linear:
    linear = nn.Linear(*reversed(weight.shape), bias=False, dtype=weight.dtype)
    linear.load_state_dict({"weight": weight})
    return linear


#: The maker of each pair, its arguments, and the tolerance. The author of M4 contributed relative_key_query to BERT.
PAIRS: dict[str, tuple[Callable[..., tuple[Mine, Peer]], dict[str, Any], float]] = {
    "Shaw in BERT": (bert, {"spec": "shaw", "kind": "relative_key"}, EXACT),
    "M4 in BERT": (bert, {"spec": "m4", "kind": "relative_key_query"}, EXACT),
    "NEZHA": (nezha, {"clip": 3}, EXACT),
    "DeBERTa-v2": (deberta_original, {"args": ""}, ROUNDED),
    "DeBERTa-v2, clipped": (deberta_original, {"args": "clip=4", "longest": 4}, ROUNDED),
    "DeBERTa-v2, shared": (deberta_original, {"args": "share_att_key=true"}, ROUNDED),
    "DeBERTa-v2, buckets": (deberta_original, {"args": "buckets=8", "buckets": 8}, ROUNDED),
    "DeBERTa-v3": (
        deberta_original,
        {"args": "buckets=4,clip=7,share_att_key=true", "buckets": 4, "longest": 7},
        ROUNDED,
    ),
    "the paper's DeBERTa": (deberta_paper, {}, ROUNDED),
    "XLNet": (xlnet, {"args": ""}, ROUNDED),
    "XLNet, clamped": (xlnet, {"args": "clamp=3", "clamp": 3}, ROUNDED),
}


@both_directions
@pytest.mark.parametrize(("make", "options", "tolerance"), PAIRS.values(), ids=PAIRS)
def test_attention_is_that_of_the_peer(
    make: Callable[..., tuple[Mine, Peer]], options: dict[str, Any], tolerance: float, causal: bool
) -> None:
    check_same(*make(**options), tolerance, causal=causal)


def test_deberta_v2_has_our_buckets() -> None:
    module, x = oracle(MODELS + "deberta_v2.modeling_deberta_v2"), torch.arange(-511, 512)
    for buckets, longest in ((256, 512), (8, 12), (4, 7), (64, 512)):
        inside = x[x.abs() < longest]
        theirs = module.make_log_bucket_position(inside, buckets, longest)
        assert torch.equal(log_bucket(inside, buckets, longest), theirs.long())


def t5(decoder: bool, scale: str = "one") -> tuple[Mine, Peer]:
    """Return our layer and T5's; causal attention has the buckets of a decoder, other attention those of an encoder."""
    module = oracle(MODELS + "t5.modeling_t5")
    config = module.T5Config(
        d_model=DIM,
        d_kv=HEAD_DIM,
        num_heads=HEADS,
        is_decoder=decoder,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=6,
    )
    peer = drawn(module.T5Attention(config, has_relative_attention_bias=True, layer_idx=0))
    mine = Mine("t5", f"content_scale={scale},buckets=8,max_distance=6", causal=decoder, bias=False)
    mine.copy(peer.q, peer.k, peer.v, peer.o)
    mine.table.copy_(peer.relative_attention_bias.weight.t())

    def run(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        outputs = peer(x, mask, cache_position=torch.arange(KEYS), output_attentions=True)
        return outputs[0], outputs[-1]

    return mine, run


@both_directions
def test_attention_is_that_of_t5(causal: bool) -> None:
    check_same(*t5(causal), ROUNDED, causal=causal)
    assert differs(*t5(causal, "head"), causal=causal)


@pytest.mark.parametrize("buckets", [32, 8])
@both_directions
def test_t5_has_our_buckets_of_every_distance(causal: bool, buckets: int) -> None:
    module = oracle(MODELS + "t5.modeling_t5")
    mine = Mine("t5", f"buckets={buckets}", max_length=600, causal=causal)
    mine.table.copy_(torch.arange(buckets).expand(HEADS, -1))
    where = Positions(600, 600, CPU, causal=causal)
    ours = mine.call(where).additive(torch.empty(0), None)[0, 1]
    theirs = module.T5Attention._relative_position_bucket(where.delta, not causal, buckets, 128)
    assert theirs.unique().numel() == buckets - (not causal)  # an encoder does not use the first bucket for the right
    assert torch.equal(ours.long(), theirs)
