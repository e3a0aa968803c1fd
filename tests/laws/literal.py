"""Compute attention as in the papers, slowly, from the literal references and independently of the hooks.

Legend: B batch, h heads, Q queries, K keys, D head width, d width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fairseq_posenc.attention import SelfAttention
from fairseq_posenc.core.compose import Projection
from fairseq_posenc.encodings import Composition, Layer, PositionEncoding
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack


def literal_all(stack: Stack, inputs: Tensor, positions: Positions) -> Tensor:
    """Return [L, B, Q, d] like `scene.attend_all`, for the inputs of all columns [B, K, d] with positions."""
    attentions = [block.self_attn for block in stack.layers]
    return torch.stack([literal(a, stack.pos, i, inputs, positions) for i, a in enumerate(attentions, start=1)])


def literal_embed(encoding: Composition, x: Tensor, positions: Positions) -> Tensor:
    """Apply the `reference_embed` of all members, one after the other."""
    for member in encoding.members.values():
        x = member.reference_embed(x, positions)
    return x


def literal(
    attention: SelfAttention, encoding: Composition, index: int, inputs: Tensor, positions: Positions
) -> Tensor:
    """Return the output of one layer, [B, K, d] -> [B, Q, d]."""
    positions = literal_window(encoding, index, positions)
    layers = literal_layers(encoding, index, attention.project_query, attention.project_key, inputs)
    logits, allowed, values = literal_pairs(attention, layers, inputs, positions)
    weights = literal_softmax(logits, allowed)
    out = torch.einsum("bhij,bhjd->bhid", weights, values)
    for member, layer in layers:
        extra = member.reference_values(weights, positions, layer)
        out = out if extra is None else out + extra
    return attention.out_proj(out.transpose(1, 2).flatten(2))


def literal_pairs(
    attention: SelfAttention, layers: Sequence[tuple[PositionEncoding, Layer]], inputs: Tensor, positions: Positions
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the logits [B, h, Q, K] of one layer, which of them count, and the values [B, h, K, D]."""
    keys_of = values_of = inputs
    allowed = literal_mask(positions)
    for member, layer in layers:
        if "compress" in member.hooks:
            keys_of, values_of = member.reference_compress(keys_of, values_of, positions, layer)
            allowed = allowed.any(-1, keepdim=True)  # a slot holds all keys
    q = heads_of(attention.q_proj(inputs[:, positions.offset :]), attention)
    logits = literal_logits(layers, q, heads_of(attention.k_proj(keys_of), attention), positions)
    return logits, allowed.expand_as(logits), heads_of(attention.v_proj(values_of), attention)


def literal_window(encoding: Composition, index: int, positions: Positions) -> Positions:
    """Return the positions with the window of the members that are active in layer `index`."""
    for member in encoding.members.values():
        window = member.options.window
        if window is not None and index in member.layer_numbers:
            return replace(positions, **({"span": window} if positions.causal else {"radius": window // 2}))
    return positions


def literal_layers(
    encoding: Composition, index: int, project_q: Projection, project_k: Projection, inputs: Tensor
) -> list[tuple[PositionEncoding, Layer]]:
    """Return the members that are active in layer `index`, each with its own description of the layer."""
    numbers = [(member, member.layer_numbers) for member in encoding.members.values()]
    return [
        (member, Layer(index, own.index(index) + 1, {}, project_q, project_k, inputs=inputs))
        for member, own in numbers
        if index in own
    ]


def literal_logits(
    layers: Sequence[tuple[PositionEncoding, Layer]], q: Tensor, k: Tensor, positions: Positions
) -> Tensor:
    """Return the logits [B, h, Q, K]; the content term is part of each member's reference and counts once."""
    plain = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
    terms = [member.reference(q, k, positions, layer) - plain for member, layer in layers]
    logits = plain + sum(terms)
    logits = _adapted(layers, logits, q, k, positions)
    for member, layer in layers:
        logits = logits * member.reference_row_factor(positions, layer)
    return logits


def _adapted(
    layers: Sequence[tuple[PositionEncoding, Layer]], logits: Tensor, q: Tensor, k: Tensor, positions: Positions
) -> Tensor:
    """Add the terms of a member that adapts the biases."""
    for member, layer in layers:
        if "adapt" in member.hooks:
            content = content_of(layers, q, k, positions)
            return logits + member.reference_adapt(content, logits - content, positions, layer)
    return logits


def content_of(layers: Sequence[tuple[PositionEncoding, Layer]], q: Tensor, k: Tensor, positions: Positions) -> Tensor:
    """Return the logits without biases, [B, h, Q, K]. Other laws check the rotations and scales of the members."""
    scale = q.shape[-1] ** -0.5
    raw_q, raw_k = q, k
    for member, layer in layers:
        tensors = member.per_layer(positions)[layer.rank - 1]
        own = replace(layer, tensors=tensors)
        if "scores" in member.hooks:
            return member.scores(raw_q, raw_k, positions, own)
        q = member.project_q(q, positions, own) if "project_q" in member.hooks else q
        k = member.project_k(k, positions, own) if "project_k" in member.hooks else k
        scale = scale if member.scale is None else member.scale
    return torch.einsum("bhid,bhjd->bhij", q, k) * scale


def literal_mask(positions: Positions) -> Tensor:
    """Return which keys each query may see, [1 or B, 1, Q, K] bool."""
    queries, keys, span = positions.query_length, positions.key_length, positions.span

    def seen(row: int, key: int) -> bool:
        column = row + keys - queries
        if positions.radius is not None:
            return abs(key - column) <= positions.radius
        return not positions.causal or (key <= column and (span is None or key > column - span))

    mask = torch.tensor([[seen(i, j) for j in range(keys)] for i in range(queries)])[None, None]
    return mask if positions.padding is None else mask & ~positions.padding[:, None, None, :]


def literal_softmax(logits: Tensor, allowed: Tensor) -> Tensor:
    """Return exponentials divided by their sum; rows without an allowed key are zeros."""
    largest = logits.masked_fill(~allowed, -1e300).amax(-1, keepdim=True).detach()
    exponentials = torch.exp((logits - largest).masked_fill(~allowed, 0.0)) * allowed
    total = exponentials.sum(-1, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


def heads_of(x: Tensor, attention: SelfAttention) -> Tensor:
    """Split the heads, [B, T, d] -> [B, h, T, D]."""
    return torch.stack(x.split(attention.head_dim, -1), 1)
