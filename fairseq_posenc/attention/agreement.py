"""Check that the inputs of the attention fit their positions, because torch would silently broadcast or drop values.

Legend: B samples, T new tokens, M memory columns.
"""

from __future__ import annotations

from typing import NamedTuple

from ..positions import Positions
from .cache import KeyValueCache


class Size(NamedTuple):
    """Hold the numbers of samples and of columns of a tensor."""

    batch: int
    columns: int


def check_tokens(tokens: Size, positions: Positions) -> None:
    """Raise ValueError unless the positions have as many queries and samples as the new tokens [B, T]."""
    if tokens.columns != positions.query_length:
        raise ValueError(
            f"the input has {tokens.columns} tokens per sample, but its positions have {positions.query_length} "
            "queries: make the positions from the same tokens"
        )
    if positions.batch is not None and tokens.batch != positions.batch:
        raise ValueError(
            f"the input has {tokens.batch} samples, but its positions have {positions.batch} samples: "
            "make the positions from the same tokens"
        )


def check_past(
    tokens: Size, memory: Size | None, cache: KeyValueCache | None, positions: Positions, *, layer: int
) -> None:
    """Raise ValueError unless memory and cache together hold exactly the columns before the queries.

    With a cache, memory is given only in the first call, which copies the keys of the memory into the cache.

    Args:
        tokens: Size of the new tokens, [B, T].
        memory: Size of the states of earlier segments, [B, M].
        cache: The cache of this layer.
        positions: The positions of this forward pass.
        layer: Number of the layer, from 1, for error messages.
    """
    cached = 0 if cache is None else cache.length
    if cache is not None and cached and cache.batch != tokens.batch:
        raise ValueError(
            f"layer {layer}: the cache holds {cache.batch} samples, but the input has {tokens.batch}: "
            "give every batch new caches, or reorder them with the samples"
        )
    _check_memory(tokens, memory, cached, positions, layer)
    columns = cached + (0 if memory is None else memory.columns)
    if columns != positions.offset:
        raise ValueError(
            f"layer {layer}: the number of keys before the first new token is {positions.offset} according to the "
            f"positions, but cache and memory hold {columns}: make the positions with "
            f"cached={max(columns - positions.memory, 0)}, or give a cache that holds the right number of keys"
        )


def _check_memory(tokens: Size, memory: Size | None, cached: int, positions: Positions, layer: int) -> None:
    columns, expected = 0 if memory is None else memory.columns, positions.memory
    if cached and columns:
        raise ValueError(
            f"layer {layer}: {columns} states of memory were given together with a cache of {cached} keys, which "
            "already contains this memory: give memory only while the cache is empty"
        )
    if not cached and columns != expected:
        cure = f", or give a memory of {expected} states" if expected else ""
        raise ValueError(
            f"layer {layer}: the memory has {columns} states, but Positions.memory is {expected}: make the positions "
            f"with memory={columns}{cure}"
        )
    if memory is not None and memory.batch != tokens.batch:
        raise ValueError(
            f"layer {layer}: the memory holds {memory.batch} samples, but the input has {tokens.batch}: "
            "give the memory of the same samples"
        )
