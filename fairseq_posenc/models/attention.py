"""Adapt the plugin's self-attention to the interface that fairseq's layers expect."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from fairseq.incremental_decoding_utils import FairseqIncrementalState
from fairseq.modules import FairseqDropout
from fairseq.modules.quant_noise import quant_noise
from torch import Tensor

from ..attention import KeyValueCache, SelfAttention
from ..compat.patching import say_once
from ..positions import Positions

logger = logging.getLogger(__name__)


class Place(NamedTuple):
    """Hold what self-attention needs besides its input.

    fairseq's layers pass only the input and masks to self-attention. The plugin's layers therefore give an object of
    this class in place of the padding mask, which is derived from the positions.

    Args:
        positions: Positions of the queries and keys.
        tensors: The tensors of this layer that the composition's `per_layer` returned, by the names of encodings.
        memory: Inputs of this layer in earlier segments, [M, B, d].
    """

    positions: Positions
    tensors: Mapping[str, Mapping[str, Tensor]]
    memory: Tensor | None = None


class PosEncSelfAttention(FairseqIncrementalState, SelfAttention):
    """Compute the self-attention of a fairseq layer, [T, B, d] -> [T, B, d]."""

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        dropout: float = 0.0,
        bias: bool = True,
        q_noise: float = 0.0,
        qn_block_size: int = 8,
    ) -> None:
        super().__init__(dim, heads, dropout=dropout, bias=bias, batch_first=False)
        for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
            setattr(self, name, quant_noise(getattr(self, name), q_noise, qn_block_size))
        if q_noise:
            text = "Quantisation noise also applies to the projections of self-attention; fairseq ignores it there."
            say_once(logger, text)
        self.dropout_module = FairseqDropout(dropout, module_name="MultiheadAttention")

    @property
    def dropout_rate(self) -> float:
        """Return the dropout rate; as in FairseqDropout, --retain-dropout keeps dropout in inference."""
        active = self.training or self.dropout_module.apply_during_inference
        return float(self.dropout_module.p) if active else 0.0

    def forward(  # type: ignore[override]
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        key_padding_mask: Place | None = None,
        incremental_state: dict[str, Any] | None = None,
        need_weights: bool = False,
        attn_mask: Tensor | None = None,
        need_head_weights: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the outputs [T, B, d] for the inputs [T, B, d], and the attention weights if they are requested.

        The weights are averaged over heads, [B, T, K]; with `need_head_weights`, the weights of all heads are returned,
        [h, B, T, K].
        """
        place = key_padding_mask
        if not isinstance(place, Place) or attn_mask is not None or key is not query or unused:
            raise ValueError("Call this self-attention with key=query, key_padding_mask=Place(...) and no attn_mask.")
        cache = self._cache(incremental_state)
        any_weights = need_weights or need_head_weights
        out, weights = super().forward(
            query, place.positions, place.tensors, memory=place.memory, cache=cache, need_weights=any_weights
        )
        if weights is not None:
            weights = weights.transpose(0, 1) if need_head_weights else weights.mean(1)
        return out, weights

    # -- fairseq's incremental state -------------------------------------------------------------------

    @property
    def _cache_key(self) -> str:
        return f"{self._incremental_state_id}.cache"

    def _cache(self, incremental_state: dict[str, Any] | None) -> KeyValueCache | None:
        if incremental_state is None:
            return None
        cache: KeyValueCache = incremental_state.setdefault(self._cache_key, KeyValueCache())
        return cache

    def cached_length(self, incremental_state: dict[str, Any] | None) -> int:
        """Return the number of tokens in the cache."""
        if incremental_state is None:
            return 0
        cache = incremental_state.get(self._cache_key)
        return 0 if cache is None else cache.length

    def reorder_incremental_state(self, incremental_state: dict[str, Any], new_order: Tensor) -> dict[str, Any]:
        """Reorder the cache as beam search reorders its beams, by new_order [B'] int64."""
        if self.cached_length(incremental_state):
            incremental_state[self._cache_key].reorder(new_order)
        return incremental_state

    def _get_input_buffer(self, incremental_state: dict[str, Any] | None) -> dict[str, Tensor]:
        """Return nothing: fairseq's layers ask for it, but read it with --cross-self-attention only."""
        return {}
