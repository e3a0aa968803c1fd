"""Compute a language model with memory by its definition: one forward pass over the whole text under a mask.

Everything is computed from the encodings' literal references. Legend: B streams, N tokens, M states of memory, d width.
"""

from __future__ import annotations

from typing import Any

import torch
from laws.literal import heads_of, literal_embed, literal_layers, literal_logits, literal_softmax
from torch import Tensor

from fairseq_posenc.positions import Positions


def mask(length: int, segment: int, memory: int, same_length: bool = False) -> Tensor:
    """Return [N, N]: row t sees the columns from the start of its segment minus M (or its last M columns) up to t."""
    rows, columns = torch.arange(length)[:, None], torch.arange(length)[None]
    first = rows - memory + 1 if same_length else rows // segment * segment - memory
    return (columns <= rows) & (columns >= first)


def states(model: Any, tokens: Tensor, allowed: Tensor) -> Tensor:
    """Map [B, N] to [B, N, d] by one forward pass without memory, under a mask that all layers use."""
    decoder = model.decoder
    where = Positions(tokens.shape[1], tokens.shape[1], tokens.device, causal=True)
    vars(where)["allowed"] = allowed[None]  # only for encodings that read it
    x = literal_embed(decoder.pos, decoder.embed_scale * decoder.embed_tokens(tokens), where)
    for index, layer in enumerate(decoder.layers, start=1):
        attention = layer.self_attn
        attended = _attended(attention, decoder.pos, index, x, where, allowed)
        x = layer.self_attn_layer_norm(x + attended)
        x = layer.final_layer_norm(x + layer.fc2(layer.fc1(x).relu()))
    return x


def by_prefixes(model: Any, tokens: Tensor, allowed: Tensor) -> Tensor:
    """Return [B, N, d]: one forward pass over the whole prefix of each token."""
    ends = range(1, tokens.shape[1] + 1)
    with torch.no_grad():
        rows = [states(model, tokens[:, :end], allowed[:end, :end])[:, -1] for end in ends]
    return torch.stack(rows, 1)


def _attended(attention: Any, pos: Any, index: int, x: Tensor, where: Positions, allowed: Tensor) -> Tensor:
    """Map [B, N, d] to [B, N, d] by one layer of attention."""
    layers = literal_layers(pos, index, attention.content_query, attention.content_key, x)
    q, k, v = (heads_of(project(x), attention) for project in (attention.q_proj, attention.k_proj, attention.v_proj))
    weights = literal_softmax(literal_logits(layers, q, k, where), allowed[None, None])
    out = torch.einsum("bhij,bhjd->bhid", weights, v)
    for member, layer in layers:
        extra = member.reference_values(weights, where, layer)
        out = out if extra is None else out + extra
    return attention.out_proj(out.transpose(1, 2).flatten(2))
