"""Tables of parameters: how they are shared, their options, and how a layer gets its part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..positions import Positions
from .base import StackShape
from .options import option

SHARING = ("none", "head-wise", "layer-wise", "all")
INITS = ("normal", "zeros", "ones", "xavier-uniform")


def share_option(default: str) -> Any:
    """Return the option `share` (METHODS.md 0.4)."""
    text = "one table each layer and head (none), heads share (head-wise), layers share (layer-wise), all share"
    return option(default, text, choices=SHARING)


def init_option(default: str, choices: tuple[str, ...] = INITS) -> Any:
    """Return the option `init` (METHODS.md 3.4). Not all `choices` suit all methods."""
    return option(default, "how the table starts", choices=choices)


def init_std_option(example: float = 0.1, unset: str = "0.02") -> Any:
    """Return the option `init_std`."""
    return option(None, f"standard deviation of init=normal; unset: {unset}", example=example)


def clip_option() -> Any:
    """Return the option `clip`, the papers' k."""
    return option(None, "k: distances beyond k share the row of k; unset: n - 1", example=2)


def copies(share: str, stack: StackShape) -> tuple[int, int]:
    """Return how many tables there are along layers and heads."""
    layers = stack.layers if share in ("none", "head-wise") else 1
    heads = stack.heads if share in ("none", "layer-wise") else 1
    return layers, heads


def axes(share: str) -> str:
    """Return the axes along which there are several tables, in letters: `mh`, `m`, `h` or nothing."""
    return {"none": "mh", "head-wise": "m", "layer-wise": "h", "all": ""}[share]


def shape(share: str, stack: StackShape, *extents: int) -> tuple[int, ...]:
    """Return the shape of a table that is shared like this: [L or 1, h or 1, *extents]."""
    return *copies(share, stack), *extents


def clip_of(clip: int | None, stack: StackShape) -> int:
    """Return k: the option, or n - 1.

    Raises:
        ValueError: a k below 1, or beyond n, whose rows no sequence of training could reach.
    """
    if clip is None:
        return stack.max_length - 1
    if not 1 <= clip <= stack.max_length:
        raise ValueError(f"clip={clip}: k is from 1 to n, which is {stack.max_length} ({stack.length_flag})")
    return clip


def of_layer(weight: Tensor, index: int, heads: int) -> Tensor:
    """Return the table of layer `index` (from 1) as each head sees it, [h, ...]; for references."""
    part = weight[(index - 1) % weight.shape[0]]
    return part.expand(heads, *part.shape[1:])


def rows_of(positions: Positions, clip: int) -> Tensor | slice:
    """Return the table row of each of the L distances, clip(j - i, -k, k) + k: a slice if none is clipped."""
    longest = max(positions.key_length, positions.query_length) - 1
    if longest <= clip:
        return slice(clip - positions.key_length + 1, clip + positions.query_length)
    return positions.shared(("rows", clip), lambda: _clipped(positions.distances, clip))


def _clipped(distances: Tensor, clip: int) -> Tensor:
    return distances.clamp(-clip, clip) + clip


def pair_by_pair(positions: Positions, row_of: Callable[[int], int]) -> Tensor:
    """Return row_of(j - i) of every pair, [Q, K], computed one by one; for references."""
    return torch.tensor([[row_of(int(delta)) for delta in row] for row in positions.delta])
