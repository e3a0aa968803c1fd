"""Self-attention with a position encoding.

Legend: B batch, T new tokens, M memory columns, K keys, h heads, D head width, d model width.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..core.agreement import check_direction
from ..core.compose import Composition, LayerCall, LayerView
from ..positions import Positions
from .agreement import Size, check_past, check_tokens
from .cache import KeyValueCache
from .paths import Projected, attend


class SelfAttention(nn.Module):
    """Multi-head self-attention whose logits and values pass through an encoding's hooks.

    Parameter names and initialisation are those of fairseq's MultiheadAttention, so that weights can be
    copied either way.

    Args:
        dim: d. heads: h. dropout: of the attention weights. bias: of the projections.
        batch_first: inputs are [B, T, d]; otherwise [T, B, d], as in fairseq.
    """

    view: LayerView

    def __init__(
        self, dim: int, heads: int, *, dropout: float = 0.0, bias: bool = True, batch_first: bool = True
    ) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"width {dim} is not a multiple of {heads} heads")
        self.embed_dim, self.num_heads, self.head_dim = dim, heads, dim // heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.path = "auto"
        self.k_proj = nn.Linear(dim, dim, bias=bias)
        self.v_proj = nn.Linear(dim, dim, bias=bias)
        self.q_proj = nn.Linear(dim, dim, bias=bias)
        self.out_proj = nn.Linear(dim, dim, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier, with gain 1/sqrt(2) for the three input projections, as in fairseq."""
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out_proj.weight)
        if self.out_proj.bias is not None:
            nn.init.zeros_(self.out_proj.bias)

    def use(self, encoding: Composition, index: int) -> None:
        """Make this the attention of layer `index` (from 1) of the encoding's stack."""
        self.view = encoding.layer(index, self.content_query, self.content_key)

    @property
    def dropout_rate(self) -> float:
        """The probability of dropping a weight, now."""
        return self.dropout if self.training else 0.0

    def project_query(self, x: Tensor) -> Tensor:
        """The content queries: [B, T, d] (or [T, B, d]) -> [B, h, T, D]."""
        return self._split(self.q_proj(x))

    def project_key(self, x: Tensor) -> Tensor:
        """The content keys: [B, T, d] (or [T, B, d]) -> [B, h, T, D]."""
        return self._split(self.k_proj(x))

    def content_query(self, x: Tensor) -> Tensor:
        """For encodings: [B, T, d] -> [B, h, T, D], whatever the layout of this module's inputs."""
        return self._heads(self.q_proj(x)).transpose(1, 2)

    def content_key(self, x: Tensor) -> Tensor:
        """For encodings: [B, T, d] -> [B, h, T, D], whatever the layout of this module's inputs."""
        return self._heads(self.k_proj(x)).transpose(1, 2)

    def forward(
        self,
        x: Tensor,
        positions: Positions,
        tensors: Mapping[str, Tensor],
        *,
        memory: Tensor | None = None,
        cache: KeyValueCache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Args:
            x: the new tokens, [B, T, d] (or [T, B, d]).
            positions: T queries among K keys.
            tensors: what the encoding's `per_layer` handed out for this layer.
            memory: states of earlier segments, [B, M, d] (or [M, B, d]), at columns 0 to M-1; with a cache only
                while that is empty.
            cache: holds the K - T columns seen before, and gets the new ones.
            need_weights: also return the weights, [B, h, T, K].
        """
        self._check(x, positions, memory, cache)
        call = self.view.at(positions, tensors)
        k_in = v_in = x if memory is None else torch.cat([memory, x], 1 if self.batch_first else 0)
        compressed = self.view.has("compress")
        if compressed:
            if cache is not None:
                raise ValueError("compressed keys cannot be cached: they stand for all columns of one forward")
            k_in, v_in = self._compressed(k_in, call)
        raw_q, raw_k = self.project_query(x), self.project_key(k_in)
        q, k, v = call.project_q(raw_q), call.project_k(raw_k), self._split(self.v_proj(v_in))
        if cache is not None:
            k, v, raw_k = self._cached(cache, k, v, raw_k)
        projected = Projected(q, k, v, raw_q, raw_k, positioned=not compressed)
        rate = self.dropout_rate
        attended, weights = attend(
            projected, call, training=self.training, dropout=rate, need_weights=need_weights, path=self.path
        )
        return self.out_proj(self._merge(attended)), weights

    def _compressed(self, x: Tensor, call: LayerCall) -> tuple[Tensor, Tensor]:
        """What keys and values are made of, [B, K', d] (or [K', B, d]) each; pads are zeros to the encoding."""
        x = x if self.batch_first else x.transpose(0, 1)
        pads = call.positions.padding
        x = x if pads is None else x.masked_fill(pads[..., None], 0.0)
        k_in, v_in = call.compress(x, x)
        return (k_in, v_in) if self.batch_first else (k_in.transpose(0, 1), v_in.transpose(0, 1))

    def _cached(self, cache: KeyValueCache, k: Tensor, v: Tensor, raw_k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All columns of k', v and the raw keys, which are k' where no encoding projects them."""
        if not self.view.reads_raw_keys:
            k, v = cache.append(k, v)
            return k, v, k
        k, v, raw_k = cache.append(k, v, raw_k)
        return k, v, raw_k

    def _check(self, x: Tensor, positions: Positions, memory: Tensor | None, cache: KeyValueCache | None) -> None:
        """Raise where tokens, memory or cache are not those that the positions, and so the encoding, know of."""
        check_direction(positions, self.view.encoding.stack)
        tokens = self._size(x)
        check_tokens(tokens, positions)
        check_past(tokens, None if memory is None else self._size(memory), cache, positions, layer=self.view.index)

    def _size(self, x: Tensor) -> Size:
        """Return the samples and columns of [B, T, d] or [T, B, d]."""
        return Size(x.shape[0], x.shape[1]) if self.batch_first else Size(x.shape[1], x.shape[0])

    def _split(self, x: Tensor) -> Tensor:
        """[B, T, d] or [T, B, d] -> [B, h, T, D]."""
        heads = self._heads(x)
        return heads.transpose(1, 2) if self.batch_first else heads.permute(1, 2, 0, 3)

    def _heads(self, x: Tensor) -> Tensor:
        """[..., d] -> [..., h, D]."""
        return x.unflatten(-1, (self.num_heads, self.head_dim))

    def _merge(self, x: Tensor) -> Tensor:
        """[B, h, T, D] -> [B, T, d] or [T, B, d]."""
        return (x.transpose(1, 2) if self.batch_first else x.permute(2, 0, 1, 3)).flatten(2)
