"""A Transformer stack in plain torch, with any position encoding.

Legend: B batch, T new tokens, M memory columns, d model width, L layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .attention import KeyValueCache, SelfAttention
from .encodings import StackShape, build
from .positions import Positions


class Block(nn.Module):
    """Post-LN self-attention and FFN (BERT, Vaswani et al. 2017)."""

    def __init__(self, dim: int, heads: int, ffn: int, *, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.self_attn = SelfAttention(dim, heads, dropout=attention_dropout)
        self.self_attn_layer_norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, ffn)
        self.fc2 = nn.Linear(ffn, dim)
        self.final_layer_norm = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        positions: Positions,
        tensors: Mapping[str, Tensor],
        memory: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """[B, T, d] -> [B, T, d]."""
        attended, _ = self.self_attn(x, positions, tensors, memory=memory, cache=cache)
        x = self.self_attn_layer_norm(x + self.dropout(attended))
        return self.final_layer_norm(x + self.dropout(self.fc2(F.gelu(self.fc1(x)))))


class Stack(nn.Module):
    """L blocks and the encoding that they share.

    Args:
        pos_enc, pos_enc_args: as on the command line.
        shape: layers, heads, width, maximum length, direction.
        ffn: width of the feed-forward layers; unset: 4 d.
        checkpoint_activations: recompute each block in the backward.
    """

    def __init__(
        self,
        pos_enc: str,
        pos_enc_args: str | Mapping[str, Any] | None,
        shape: StackShape,
        *,
        ffn: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        checkpoint_activations: bool = False,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.checkpoint_activations = checkpoint_activations
        self.pos = build(pos_enc, pos_enc_args, shape)
        rates = {"dropout": dropout, "attention_dropout": attention_dropout}
        ffn = 4 * shape.dim if ffn is None else ffn
        blocks = [Block(shape.dim, shape.heads, ffn, **rates) for _ in range(shape.layers)]
        for index, block in enumerate(blocks, start=1):
            block.self_attn.use(self.pos, index)
        self.layers = nn.ModuleList(blocks)

    def forward(
        self,
        x: Tensor,
        positions: Positions,
        *,
        memory: Sequence[Tensor] | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Run the stack.

        Args:
            x: embedded tokens without positions, [B, T, d].
            positions: T queries among K keys.
            memory: the inputs of each layer in earlier segments, L tensors [B, M, d].
            caches: one a layer, for incremental decoding.
        Returns:
            the last layer's output [B, T, d], and each layer's input (L tensors: the next segment's memory).
        """
        if caches is not None and self.checkpoint_activations and torch.is_grad_enabled():
            raise ValueError("activation checkpointing would append to the caches twice")
        self.pos.check(positions)
        x = self.pos.embed(x, positions)
        inputs = []
        for i, (layer, tensors) in enumerate(zip(self.layers, self.pos.per_layer(positions), strict=True)):
            inputs.append(x)
            given = (memory[i] if memory is not None else None, caches[i] if caches is not None else None)
            if self.checkpoint_activations and torch.is_grad_enabled():
                x = checkpoint(layer, x, positions, tensors, *given, use_reentrant=False)
            else:
                x = layer(x, positions, tensors, *given)
        return x, inputs
