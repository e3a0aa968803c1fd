"""Define self-attention with a position encoding.

Legend: B batch, T new tokens, M memory columns, K keys, h heads, D head width, d model width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from ..core.compose import Composition, LayerView
from ..positions import Positions
from .agreement import Size, check_past, check_tokens
from .cache import KeyValueCache
from .choice import Projected
from .paths import attend


class SelfAttention(nn.Module):
    """Compute multi-head self-attention, and call the hooks of a position encoding.

    The parameters have the same names and initial values as in fairseq's MultiheadAttention. Weights can therefore be
    copied from either module to the other.

    Args:
        dim: Model width, d.
        heads: Number of heads, h.
        dropout: Dropout probability of the attention weights.
        bias: Whether the projections have biases.
        batch_first: Whether the inputs are [B, T, d]; otherwise they are [T, B, d], as in fairseq.
    """

    #: Function for analyses, which each forward pass calls with the queries, the keys and the encoding's hooks.
    watch: Callable[[Projected, LayerView], None] | None = None

    def __init__(
        self, dim: int, heads: int, *, dropout: float = 0.0, bias: bool = True, batch_first: bool = True
    ) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"the width {dim} must be a multiple of the number of heads, which is {heads}")
        self.embed_dim, self.num_heads, self.head_dim = dim, heads, dim // heads
        self.dropout = dropout
        self.batch_first = batch_first
        self._view: LayerView | None = None
        self.path = "auto"
        self.k_proj = nn.Linear(dim, dim, bias=bias)
        self.v_proj = nn.Linear(dim, dim, bias=bias)
        self.q_proj = nn.Linear(dim, dim, bias=bias)
        self.out_proj = nn.Linear(dim, dim, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights by Xavier initialisation as fairseq does, with gain 1/sqrt(2) for q, k and v."""
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out_proj.weight)
        if self.out_proj.bias is not None:
            nn.init.zeros_(self.out_proj.bias)

    def use(self, encoding: Composition, index: int) -> None:
        """Make this module the attention of layer `index` (from 1) in the stack that the given encoding belongs to.

        Raises:
            ValueError: The encoding was built for another width or number of heads, or the stack has no such layer.
        """
        own, built = (self.embed_dim, self.num_heads), (encoding.stack.dim, encoding.stack.heads)
        if own != built:
            raise ValueError(
                f"this SelfAttention has width {own[0]} and {own[1]} heads, but the encoding was built for width "
                f"{built[0]} and {built[1]} heads: give StackShape and SelfAttention the same numbers"
            )
        self._view = encoding.layer(index, self.content_query, self.content_key)

    @property
    def view(self) -> LayerView:
        """Return this layer's access to the encoding.

        Raises:
            RuntimeError: `use` was not called.
        """
        if self._view is None:
            raise RuntimeError(
                "this SelfAttention has no position encoding: call use(encoding, number) once before the first forward "
                "pass, where encoding is the result of build and number is the layer's number, from 1"
            )
        return self._view

    @property
    def dropout_rate(self) -> float:
        """Return the dropout probability of the attention weights, which is 0 in evaluation mode."""
        return self.dropout if self.training else 0.0

    def project_query(self, x: Tensor) -> Tensor:
        """Project inputs to queries without positions: [B, T, d] (or [T, B, d]) -> [B, h, T, D]."""
        return self._split(self.q_proj(x))

    def project_key(self, x: Tensor) -> Tensor:
        """Project inputs to keys without positions: [B, T, d] (or [T, B, d]) -> [B, h, T, D]."""
        return self._split(self.k_proj(x))

    def content_query(self, x: Tensor) -> Tensor:
        """Project vectors of an encoding to queries: [B, T, d] -> [B, h, T, D], whatever `batch_first` is."""
        return self._heads(self.q_proj(x)).transpose(1, 2)

    def content_key(self, x: Tensor) -> Tensor:
        """Project vectors of an encoding to keys: [B, T, d] -> [B, h, T, D], whatever `batch_first` is."""
        return self._heads(self.k_proj(x)).transpose(1, 2)

    def forward(
        self,
        x: Tensor,
        positions: Positions,
        tensors: Mapping[str, Mapping[str, Tensor]],
        *,
        memory: Tensor | None = None,
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from the new tokens to all columns.

        Args:
            x: The new tokens, [B, T, d] (or [T, B, d]).
            positions: Positions of the T queries and K keys.
            tensors: The tensors of this layer that the composition's `per_layer` returned, by the names of encodings.
            memory: States of earlier segments, [B, M, d] (or [M, B, d]), at columns 0 to M-1. If there is a cache,
                memory may be given only while the cache is empty.
            cache: The cache with the K - T earlier columns, to which the new columns are appended.
            need_weights: Whether to return the attention weights too.

        Returns:
            The output, shaped as x, and the attention weights [B, h, T, K] or None.
        """
        self._check(x, positions, memory, cache)
        view = self.view
        call = view.at(positions, tensors)
        k_in = v_in = x if memory is None else torch.cat([memory, x], 1 if self.batch_first else 0)
        compressed = view.has("compress")
        if compressed:
            if cache is not None:
                raise ValueError("compressed keys cannot be cached: leave the cache out")
            k_in, v_in = self._compressed(k_in, call)
        raw_q, raw_k = self.project_query(x), self.project_key(k_in)
        q, k, v = call.project_q(raw_q), call.project_k(raw_k), self._split(self.v_proj(v_in))
        from_input = call.project_input(k_in if self.batch_first else k_in.transpose(0, 1))
        if cache is not None:
            k, v, raw_k, from_input = self._cached(cache, k, v, raw_k, from_input)
        call = call.reading(from_input)
        projected = Projected(q, k, v, raw_q, raw_k, positioned=not compressed)
        if self.watch is not None:
            self.watch(projected, call)
        rate = self.dropout_rate
        attended, weights = attend(
            projected, call, training=self.training, dropout=rate, need_weights=need_weights, path=self.path
        )
        return self.out_proj(self._merge(attended)), weights

    def _compressed(self, x: Tensor, call: LayerView) -> tuple[Tensor, Tensor]:
        """Return the compressed inputs of keys and of values, [B, K', d] (or [K', B, d]) each.

        Padding is replaced by zeros before the encoding compresses the inputs.
        """
        x = x if self.batch_first else x.transpose(0, 1)
        pads = call.positions.padding
        x = x if pads is None else x.masked_fill(pads[..., None], 0.0)
        k_in, v_in = call.compress(x, x)
        return (k_in, v_in) if self.batch_first else (k_in.transpose(0, 1), v_in.transpose(0, 1))

    def _cached(
        self, cache: KeyValueCache, k: Tensor, v: Tensor, raw_k: Tensor, from_input: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Append the new columns to the cache and return all columns of k', v, the raw keys and `project_input`.

        If no encoding needs the raw keys, they are not cached, and k' is returned in their place.
        """
        raw = [raw_k] if self.view.reads_raw_keys else []
        k, v, *others = cache.append(k, v, *raw, *from_input.values())
        raw_k = others.pop(0) if raw else k
        return k, v, raw_k, dict(zip(from_input, others, strict=True))

    def _check(self, x: Tensor, positions: Positions, memory: Tensor | None, cache: KeyValueCache | None) -> None:
        """Raise ValueError if tokens, memory or cache do not fit the positions, or the positions the encoding."""
        view, tokens = self.view, self._size(x)
        if not positions.fits(view.encoding):
            view.encoding.check_capabilities(positions)
        check_tokens(tokens, positions)
        check_past(tokens, None if memory is None else self._size(memory), cache, positions, layer=view.index)

    def _size(self, x: Tensor) -> Size:
        """Return the numbers of samples and columns of a tensor [B, T, d] or [T, B, d]."""
        return Size(x.shape[0], x.shape[1]) if self.batch_first else Size(x.shape[1], x.shape[0])

    def _split(self, x: Tensor) -> Tensor:
        """Split the heads: [B, T, d] or [T, B, d] -> [B, h, T, D]."""
        heads = self._heads(x)
        return heads.transpose(1, 2) if self.batch_first else heads.permute(1, 2, 0, 3)

    def _heads(self, x: Tensor) -> Tensor:
        """Split the last axis into heads: [..., d] -> [..., h, D]."""
        return x.view(*x.shape[:-1], self.num_heads, self.head_dim)  # `unflatten` takes several times as long

    def _merge(self, x: Tensor) -> Tensor:
        """Join the heads: [B, h, T, D] -> [B, T, d] or [T, B, d]."""
        return (x.transpose(1, 2) if self.batch_first else x.permute(2, 0, 1, 3)).flatten(2)
