"""Build a stack of Transformer layers in plain torch, with any position encoding.

Legend: B batch, T new tokens, M memory columns, d model width, L layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .attention import KeyValueCache, SelfAttention
from .attention.agreement import Size, check_past, check_tokens
from .encodings import StackShape, build
from .positions import Positions

__all__ = ["ACTIVATIONS", "Block", "Norms", "Stack"]

#: Activation functions by their names in fairseq.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_accurate": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
}


@dataclass(frozen=True)
class Norms:
    """Describe where the layer norms are.

    Args:
        before: True to normalise the inputs of attention and FFN and the last layer's output (pre-LN). False to
            normalise the sum after each residual connection (post-LN).
        embedding: Whether to normalise the input of the stack, after the positions are added.
        eps: Number that is added to the variance for numerical stability.
    """

    before: bool = False
    embedding: bool = False
    eps: float = 1e-5


class Block(nn.Module):
    """Run one Transformer layer of self-attention and FFN, by default with post-LN (Vaswani et al. 2017, BERT)."""

    def __init__(
        self,
        dim: int,
        heads: int,
        ffn: int,
        *,
        dropout: float,
        attention_dropout: float,
        norms: Norms = Norms(),
        activation: str = "gelu",
        attention_bias: bool = True,
    ) -> None:
        super().__init__()
        self.self_attn = SelfAttention(dim, heads, dropout=attention_dropout, bias=attention_bias)
        self.self_attn_layer_norm = nn.LayerNorm(dim, eps=norms.eps)
        self.fc1 = nn.Linear(dim, ffn)
        self.fc2 = nn.Linear(ffn, dim)
        self.final_layer_norm = nn.LayerNorm(dim, eps=norms.eps)
        self.dropout = nn.Dropout(dropout)
        self.before, self.activation = norms.before, ACTIVATIONS[activation]

    def forward(
        self,
        x: Tensor,
        positions: Positions,
        tensors: Mapping[str, Mapping[str, Tensor]],
        memory: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Run the layer, [B, T, d] -> [B, T, d]; see `SelfAttention.forward` for the arguments.

        Raises:
            ValueError: The layer is pre-LN and there is memory.
        """
        if not self.before:
            attended, _ = self.self_attn(x, positions, tensors, memory=memory, cache=cache)
            x = self.self_attn_layer_norm(x + self._dropped(attended))
            return self.final_layer_norm(x + self._dropped(self._feed_forward(x)))
        if memory is not None:
            raise ValueError("pre-LN layers cannot use memory: leave memory out, or use Norms(before=False)")
        attended, _ = self.self_attn(self.self_attn_layer_norm(x), positions, tensors, cache=cache)
        x = x + self._dropped(attended)
        return x + self._dropped(self._feed_forward(self.final_layer_norm(x)))

    def _dropped(self, x: Tensor) -> Tensor:
        return self.dropout(x) if self.training else x

    def _feed_forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc2(self.activation(self.fc1(x)))
        return out


class Stack(nn.Module):
    """Run a stack of L Transformer layers with one position encoding.

    Args:
        pos_enc, pos_enc_args: The encoding and its options, written as for `--pos-enc` and `--pos-enc-args`.
        shape: Number of layers and heads, width, maximum length, and whether the stack is a decoder.
        ffn: Width of the feed-forward layers; 4 d if unset.
        dropout: Dropout probability of the blocks and, with `norms.embedding`, of the input.
        attention_dropout: Dropout probability of the attention weights.
        checkpoint_activations: Whether to recompute each block in the backward pass to save memory.
        norms: Where the layer norms are.
        activation: Name of the feed-forward layers' activation function, one of `ACTIVATIONS`.
        attention_bias: Whether the projections of self-attention have biases.
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
        norms: Norms = Norms(),
        activation: str = "gelu",
        attention_bias: bool = True,
    ) -> None:
        super().__init__()
        self.shape = shape
        self.checkpoint_activations = checkpoint_activations
        self.pos = build(pos_enc, pos_enc_args, shape)
        ffn = 4 * shape.dim if ffn is None else ffn
        blocks = [
            Block(
                shape.dim,
                shape.heads,
                ffn,
                dropout=dropout,
                attention_dropout=attention_dropout,
                norms=norms,
                activation=activation,
                attention_bias=attention_bias,
            )
            for _ in range(shape.layers)
        ]
        for index, block in enumerate(blocks, start=1):
            block.self_attn.use(self.pos, index)
        self.layers = nn.ModuleList(blocks)
        self.layernorm_embedding = nn.LayerNorm(shape.dim, eps=norms.eps) if norms.embedding else None
        self.layer_norm = nn.LayerNorm(shape.dim, eps=norms.eps) if norms.before else None
        self.dropout = nn.Dropout(dropout) if norms.embedding else None

    @property
    def positions(self) -> Callable[..., Positions]:
        """Return the function that makes the positions of `tokens` [B, T] for this stack: `Composition.positions`."""
        return self.pos.positions

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
            x: Embedded tokens without positions, [B, T, d].
            positions: Positions of the T queries and K keys, as returned by the function `positions`.
            memory: Inputs of each layer in earlier segments, L tensors [B, M, d].
            caches: One cache per layer, for incremental decoding.

        Returns:
            The last layer's output [B, T, d] and the inputs of the L layers, which can be the next segment's memory.

        Raises:
            TypeError: `positions` is not an object of the class `Positions`.
            ValueError: The inputs do not fit the positions, or the inputs or positions do not fit the stack.
        """
        if caches is not None and self.checkpoint_activations and torch.is_grad_enabled():
            raise ValueError(
                "activation checkpointing would append to the caches twice: use torch.no_grad() with caches"
            )
        if not isinstance(positions, Positions):
            raise TypeError(f"positions must be what Stack.positions(tokens) returns, not a {type(positions).__name__}")
        self.pos.check(positions)
        self._check_inputs(x, positions, memory, caches)
        x = self.pos.embed(x, positions)
        if self.layernorm_embedding is not None and self.dropout is not None:
            x = self.dropout(self.layernorm_embedding(x))
        inputs = []
        for i, (layer, tensors) in enumerate(zip(self.layers, self.pos.per_layer(positions), strict=True)):
            inputs.append(x)
            past = (memory[i] if memory is not None else None, caches[i] if caches is not None else None)
            if self.checkpoint_activations and torch.is_grad_enabled():
                x = checkpoint(layer, x, positions, tensors, *past, use_reentrant=False)
            else:
                x = layer(x, positions, tensors, *past)
        return (x if self.layer_norm is None else self.layer_norm(x)), inputs

    def _check_inputs(
        self,
        x: Tensor,
        positions: Positions,
        memory: Sequence[Tensor] | None,
        caches: Sequence[KeyValueCache] | None,
    ) -> None:
        """Raise ValueError if the inputs do not fit the positions, before any cache is changed."""
        if x.dim() != 3:
            raise ValueError(f"the input must be [B, T, d], but its shape is {list(x.shape)}")
        if x.shape[-1] != self.shape.dim:
            raise ValueError(f"the width of the input is {x.shape[-1]}, but StackShape.dim is {self.shape.dim}")
        tokens = Size(x.shape[0], x.shape[1])
        check_tokens(tokens, positions)
        if caches is not None and not self.shape.causal:
            raise ValueError(
                "caches are for decoders, but this stack sees tokens on both sides (StackShape.causal is False): run "
                "it on all tokens at once, or build it with causal=True"
            )
        for name, per_layer in (("memory", memory), ("caches", caches)):
            if per_layer is not None and len(per_layer) != len(self.layers):
                raise ValueError(
                    f"`{name}` has length {len(per_layer)}, but the stack has {len(self.layers)} layers: give one "
                    "entry for every layer"
                )
        for index in range(len(self.layers)):
            states = None if memory is None else Size(memory[index].shape[0], memory[index].shape[1])
            check_past(tokens, states, None if caches is None else caches[index], positions, layer=index + 1)
