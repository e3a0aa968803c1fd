"""Compare Shaw and M4 with Hugging Face's BERT and NEZHA."""

from __future__ import annotations

import pytest
import torch
from oracle_ways import DIM, EXACT, HEADS, KEYS, MODELS, Mine, Peer, both_directions, check_same, differs, oracle
from torch import Tensor, nn

CLIP = 3
#: The name of each encoding in Hugging Face's BERT; the author of M4 contributed the second one.
KINDS = {"shaw": "relative_key", "m4": "relative_key_query"}
both_kinds = pytest.mark.parametrize("spec", KINDS)


def in_attention(peer: nn.Module) -> Peer:
    """Call the self-attention of BERT or of a model derived from it."""
    return lambda x, mask: peer(x, mask, output_attentions=True)


def bert(spec: str) -> nn.Module:
    """Return BERT's self-attention with relative positions."""
    module = oracle(MODELS + "bert.modeling_bert")
    sizes = {"hidden_size": DIM, "num_attention_heads": HEADS, "max_position_embeddings": 12}
    config = module.BertConfig(**sizes, position_embedding_type=KINDS[spec])
    torch.manual_seed(0)
    peer = module.BertSelfAttention(config).double().eval().requires_grad_(False)
    # transformers 5 accepts the same option, but silently returns a model with absolute positions.
    assert "distance_embedding.weight" in peer.state_dict()
    return peer


def as_bert(peer: nn.Module, spec: str) -> Mine:
    """Return our layer with BERT's numbers. BERT's table runs over i - j: ours is its mirror image."""
    mine = Mine(spec)
    mine.copy(peer.query, peer.key, peer.value)
    mine.table[0] = peer.distance_embedding.weight.flip(0)
    return mine


@both_kinds
@both_directions
def test_bert_is_unclipped(causal: bool, spec: str) -> None:
    peer = bert(spec)
    check_same(as_bert(peer, spec), in_attention(peer), EXACT, causal=causal)


@both_kinds
def test_bert_tells_mistakes(spec: str) -> None:
    """The mistakes are a mirrored table, a shifted table, and a missing or additional term of keys."""
    peer = bert(spec)
    mirrored, shifted = as_bert(peer, spec), as_bert(peer, spec)
    mirrored.table.copy_(mirrored.table.flip(1))
    shifted.table.copy_(shifted.table.roll(1, 1))
    for wrong in (mirrored, shifted, as_bert(peer, "m4" if spec == "shaw" else "shaw")):
        assert differs(wrong, in_attention(peer))


def nezha() -> nn.Module:
    """Return NEZHA's self-attention, which clips, and adds to the values too."""
    module = oracle(MODELS + "deprecated.nezha.modeling_nezha")
    sizes = {"hidden_size": DIM, "num_attention_heads": HEADS, "max_position_embeddings": KEYS}
    config = module.NezhaConfig(**sizes, max_relative_position=CLIP)
    torch.manual_seed(0)
    return module.NezhaSelfAttention(config).double().eval().requires_grad_(False)


def nezha_table(peer: nn.Module) -> Tensor:
    """Return [2k+1, D] of the [K, K, D] that the peer holds: row 0 has the distances 0 .. K-1, column 0 the rest."""
    pairs = peer.relative_positions_encoding(KEYS)
    return torch.cat([pairs[: CLIP + 1, 0].flip(0), pairs[0, 1 : CLIP + 1]])


def as_nezha(peer: nn.Module) -> Mine:
    """Return our layer with NEZHA's numbers."""
    mine = Mine("shaw", f"clip={CLIP},values=true")
    mine.copy(peer.query, peer.key, peer.value)
    mine.table[0] = nezha_table(peer)
    mine.encoding.value_weight[-1, 0] = nezha_table(peer)
    return mine


@both_directions
def test_nezha_is_shaw_with_values(causal: bool) -> None:
    peer = nezha()
    check_same(as_nezha(peer), in_attention(peer), EXACT, causal=causal)


@pytest.mark.parametrize("name", ["weight", "value_weight"])
def test_nezha_tells_a_wrong_table(name: str) -> None:
    peer = nezha()
    table = getattr(as_nezha(peer).encoding, name)
    for wrong in (table.flip(2), table.roll(1, 2), 0 * table):
        mine = as_nezha(peer)
        getattr(mine.encoding, name).copy_(wrong)
        assert differs(mine, in_attention(peer))
