"""Compute attention that is limited to a window block by block, so that time and memory grow with the window.

A block consists of neighbouring queries and of the keys in their windows. It is computed like a short sequence: by the
same path, and with the same hooks of the encoding.

Legend: B batch, h heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.compose import LayerView
from ..positions import Positions
from .choice import Projected

#: Smallest number of queries in a block. Smaller blocks would take more time to start than to compute.
SMALLEST = 64


class Block(NamedTuple):
    """Hold the columns of a block: its own queries are `first` to `last` - 1, its keys `begin` to `end` - 1."""

    first: int
    last: int
    begin: int
    end: int


def attended(x: Projected, call: LayerView, attend: Callable[[Projected, LayerView], Tensor]) -> Tensor | None:
    """Return the attended values [B, h, Q, D] block by block, or None if blocks would be wrong or save nothing.

    Blocks are computed only if every encoding of the layer declares `in_blocks`.
    """
    positions = call.positions
    if torch.compiler.is_compiling() or not x.positioned or (positions.span is None and positions.radius is None):
        return None
    blocks = list(_blocks(positions))
    if 2 * max(block.end - block.begin for block in blocks) > positions.key_length:
        return None
    if not all(member.in_blocks for member in call.members.values()):
        return None
    parts = [attend(_queries_and_keys(x, block, positions.offset), _call(call, block)) for block in blocks]
    return torch.cat([part[:, :, : block.last - block.first] for part, block in zip(parts, blocks, strict=True)], 2)


def _blocks(positions: Positions) -> Iterator[Block]:
    """Yield the blocks. The queries of an encoder attend to keys on both sides, those of a decoder to earlier ones."""
    before = positions.radius if positions.radius is not None else (positions.span or 1) - 1
    after = positions.radius or 0
    size = max(before + after, SMALLEST)
    for first in range(positions.offset, positions.key_length, size):
        last = min(first + size, positions.key_length)
        yield Block(first, last, max(0, first - before), min(last + after, positions.key_length))


def _queries_and_keys(x: Projected, block: Block, offset: int) -> Projected:
    """Return the part of a block. Its queries are its last columns, so an encoder computes some of them twice."""

    def queries(q: Tensor | None) -> Tensor | None:
        return None if q is None else q[:, :, block.first - offset : block.end - offset]

    def keys(k: Tensor | None) -> Tensor | None:
        return None if k is None else k[:, :, block.begin : block.end]

    q, k, v = queries(x.q), keys(x.k), keys(x.v)
    assert q is not None
    assert k is not None
    assert v is not None
    return Projected(q, k, v, queries(x.raw_q), keys(x.raw_k))


def _call(call: LayerView, block: Block) -> LayerView:
    """Return the hooks of a block: the columns count from its first key, and so do the results of `project_input`."""
    layers = dict(call.layers)
    for name, layer in call.layers.items():
        if "project_input" in layer.tensors:
            part = layer.tensors["project_input"][:, :, block.begin : block.end]
            layers[name] = layer.with_tensors({**layer.tensors, "project_input": part})
    return call.bound(call.positions.part(block.first, block.begin, block.end), layers)
