"""Compare Shaw and M4 with Hugging Face's BERT and NEZHA."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import (
    DIM,
    HEAD_DIM,
    HEADS,
    KEYS,
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

CLIP = 3
#: The name of each encoding in Hugging Face's BERT; the author of M4 contributed the second one.
KINDS = {"shaw": "relative_key", "m4": "relative_key_query"}
both_kinds = pytest.mark.parametrize("spec", KINDS)


def in_attention(peer: nn.Module) -> Peer:
    """Call the self-attention of BERT or of a model derived from it."""
    return lambda x, mask: peer(x, mask, output_attentions=True)


def bert(spec: str, dtype: torch.dtype, **more: object) -> nn.Module:
    """Return BERT's self-attention with relative positions."""
    module = oracle(MODELS + "bert.modeling_bert")
    sizes = {"hidden_size": DIM, "num_attention_heads": HEADS, "max_position_embeddings": 12}
    config = module.BertConfig(**sizes, position_embedding_type=KINDS[spec], **more)
    torch.manual_seed(0)
    peer = module.BertSelfAttention(config).to(dtype).eval().requires_grad_(False)
    # transformers 5 accepts the same option, but silently returns a model with absolute positions.
    assert "distance_embedding.weight" in peer.state_dict()
    return peer


def as_bert(peer: nn.Module, spec: str, dtype: torch.dtype = torch.float64) -> Mine:
    """Return our layer with BERT's numbers. BERT's table runs over i - j: ours is its mirror image."""
    mine = Mine(spec, dtype=dtype)
    mine.copy(peer.query, peer.key, peer.value)
    mine.table[0] = peer.distance_embedding.weight.flip(0)
    return mine


@both_dtypes
@both_kinds
@ways()
def test_bert_is_unclipped(way: Way, spec: str, dtype: torch.dtype) -> None:
    peer = bert(spec, dtype)
    mine = as_bert(peer, spec, dtype)
    assert mine.table.shape == (1, 23, HEAD_DIM)
    assert difference(mine, in_attention(peer), Problem.of(way, dtype)) <= tolerance(dtype)


@both_kinds
def test_bert_tells_mistakes(spec: str) -> None:
    """The mistakes are a mirrored table, a shifted table, and a missing or additional term of keys."""
    peer = bert(spec, torch.float64)
    table = as_bert(peer, spec).table
    for wrong in (table.flip(1), table.roll(1, 1)):
        mine = as_bert(peer, spec)
        mine.table.copy_(wrong)
        assert differs(mine, in_attention(peer))
    assert differs(as_bert(peer, "m4" if spec == "shaw" else "shaw"), in_attention(peer))


@both_kinds
@torch.no_grad()
def test_bert_with_its_own_cache(spec: str) -> None:
    """BERT counts the position of a cached step itself: one step after K-1 columns."""
    peer = bert(spec, torch.float64, is_decoder=True)
    problem = Problem.of(Way("steps", causal=True), torch.float64)
    ours, _ = as_bert(peer, spec).run(problem)
    past = peer(problem.x[:, :-1])[-1]
    theirs = peer(problem.x[:, -1:], past_key_value=past)[0]
    assert past[0].shape[2] == KEYS - 1
    torch.testing.assert_close(ours[:, -1:], theirs, rtol=0, atol=1e-10)
    assert (ours[:, -2:-1] - theirs).abs().max() > 1e-2


def nezha(dtype: torch.dtype) -> nn.Module:
    """Return NEZHA's self-attention, which clips, and adds to the values too."""
    module = oracle(MODELS + "deprecated.nezha.modeling_nezha")
    sizes = {"hidden_size": DIM, "num_attention_heads": HEADS, "max_position_embeddings": KEYS}
    config = module.NezhaConfig(**sizes, max_relative_position=CLIP)
    torch.manual_seed(0)
    peer = module.NezhaSelfAttention(config).to(dtype).eval().requires_grad_(False)
    assert peer.relative_positions_encoding(KEYS).shape == (KEYS, KEYS, HEAD_DIM)
    return peer


def nezha_table(peer: nn.Module) -> Tensor:
    """Return [2k+1, D] of the [K, K, D] that the peer holds: row 0 has the distances 0 .. K-1, column 0 the rest."""
    pairs = peer.relative_positions_encoding(KEYS)
    return torch.cat([pairs[: CLIP + 1, 0].flip(0), pairs[0, 1 : CLIP + 1]])


def as_nezha(peer: nn.Module, dtype: torch.dtype = torch.float64) -> Mine:
    """Return our layer with NEZHA's numbers."""
    mine = Mine("shaw", f"clip={CLIP},values=true", dtype=dtype)
    mine.copy(peer.query, peer.key, peer.value)
    mine.table[0] = nezha_table(peer)
    mine.encoding.value_weight[-1, 0] = nezha_table(peer)
    return mine


@both_dtypes
@ways(paths=("explicit", "auto"))
def test_nezha_is_shaw_with_values(way: Way, dtype: torch.dtype) -> None:
    peer = nezha(dtype)
    assert difference(as_nezha(peer, dtype), in_attention(peer), Problem.of(way, dtype)) <= tolerance(dtype)


@pytest.mark.parametrize("name", ["weight", "value_weight"])
@pytest.mark.parametrize("mistake", ["mirrored", "shifted by one", "absent"])
def test_nezha_tells_a_wrong_table(name: str, mistake: str) -> None:
    peer = nezha(torch.float64)
    mine = as_nezha(peer)
    table = getattr(mine.encoding, name)
    table.copy_({"mirrored": table.flip(2), "shifted by one": table.roll(1, 2), "absent": 0 * table}[mistake])
    assert differs(mine, in_attention(peer))


def test_nezha_has_no_fused_path() -> None:
    mine = as_nezha(nezha(torch.float64))
    with pytest.raises(ValueError, match="adds a term to the values"):
        mine.run(Problem.of(Way("whole", "fused"), torch.float64))
