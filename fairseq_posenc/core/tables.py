"""Define the options and shapes of parameter tables that layers or heads may share, and the rows of distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..positions import Positions
from .base import StackShape
from .options import N, option
from .refusal import InputError

SHARING = ("none", "head-wise", "layer-wise", "all")
INITS = ("normal", "zeros", "ones", "xavier-uniform")
#: A remark about the tables of M1 to M4 and of Shaw.
PER_HEAD = (
    "Table 1 of the M1-M4 paper counts one table per head, which corresponds to share=none. By default the heads of a "
    "layer share their table."
)


def share_option(default: str) -> Any:
    """Return the option `share`, which says along which axes a table is shared."""
    text = (
        "Which attention heads share a table: none of them (none), all heads of a layer (head-wise), heads with the "
        "same number in all layers (layer-wise), or all heads of all layers (all)."
    )
    return option(default, text, choices=SHARING)


def init_option(default: str, choices: tuple[str, ...] = INITS) -> Any:
    """Return the option `init`. Each encoding passes the `choices` that suit its method."""
    return option(default, "Initial values of the learned table.", choices=choices)


def init_std_option(example: float = 0.1, unset: str = "0.02") -> Any:
    """Return the option `init_std`, the standard deviation of init=normal."""
    return option(None, f"Standard deviation of init=normal (unset: {unset}).", between=(0, 100), example=example)


def clip_option() -> Any:
    """Return the option `clip`, which the papers call k."""
    text = (
        "Largest distance k with its own row in the table; larger distances share the row of k (unset: the maximum "
        "length minus 1)."
    )
    return option(None, text, between=(1, N), example=2)


def refuse_sharing(share: str) -> None:
    """Raise ValueError if `share` was set for a form of a method in which all layers use the same table."""
    if share != "head-wise":
        raise InputError(
            f"share={share} belongs to form=paper: leave share out, because with form=original all layers use the same "
            "table"
        )


def copies(share: str, stack: StackShape) -> tuple[int, int]:
    """Return how many layers and how many heads have tables of their own (1: all share a table)."""
    layers = stack.layers if share in ("none", "head-wise") else 1
    heads = stack.heads if share in ("none", "layer-wise") else 1
    return layers, heads


def axes(share: str) -> str:
    """Return a letter for each axis along which there are several tables: `m` for layers, `h` for heads."""
    return {"none": "mh", "head-wise": "m", "layer-wise": "h", "all": ""}[share]


def shape(share: str, stack: StackShape, *extents: int) -> tuple[int, ...]:
    """Return the shape of a table with the given option `share`: [L or 1, h or 1, *extents]."""
    return *copies(share, stack), *extents


def clip_of(clip: int | None, stack: StackShape) -> int:
    """Return the largest distance k with its own row, which is the option `clip` or, if unset, n - 1.

    Raises:
        ValueError: k is less than 1, or k is greater than n, so that training could not reach all rows.
    """
    if clip is None:
        return stack.max_length - 1
    if not 1 <= clip <= stack.max_length:
        raise InputError(f"clip={clip} must be from 1 to n, and n is {stack.max_length} ({stack.length_flag})")
    return clip


def of_layer(weight: Tensor, rank: int, heads: int) -> Tensor:
    """Return the tables of all heads in a layer, [h, ...]; only reference formulas and figures call this function.

    Args:
        weight: The tables [L or 1, h or 1, ...].
        rank: Number of the layer among the L layers in which the encoding is active, from 1.
        heads: Number of heads, h.
    """
    part = weight[(rank - 1) % weight.shape[0]]
    return part.expand(heads, *part.shape[1:])


def rows_of(positions: Positions, clip: int) -> Tensor | slice:
    """Return the table row clip(j - i, -k, k) + k of each distance j - i, as a slice if no distance is clipped."""
    longest = max(positions.key_length, positions.query_length) - 1
    # A graph serves all lengths, so it must not depend on this one.
    if not torch.compiler.is_compiling() and longest <= clip and positions.ids is None:
        return slice(clip - positions.key_length + 1, clip + positions.query_length)
    return positions.shared(("rows", clip), lambda: _clipped(positions.distances, clip))


def _clipped(distances: Tensor, clip: int) -> Tensor:
    return distances.clamp(-clip, clip) + clip


def pair_by_pair(positions: Positions, row_of: Callable[[int], int]) -> Tensor:
    """Return row_of(j - i) for every pair, [Q, K], by a slow loop; only reference formulas call this function."""
    return torch.tensor([[row_of(int(delta)) for delta in row] for row in positions.delta])
