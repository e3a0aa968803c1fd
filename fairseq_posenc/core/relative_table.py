"""Define the base class of encodings that learn a table with one row per clipped distance j - i."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..positions import Positions
from . import tables
from .base import Layer, PositionEncoding, StackShape


class RelativeTable(PositionEncoding):
    """Learn a_ij = w[clip(j - i, -k, k)] for query i and key j, a vector of D numbers unless `shapes` is overridden.

    A subclass has the options `share`, `init` and `init_std`, and also `clip` unless it overrides `clip_of`.
    """

    def __init__(self, options: Any, stack: StackShape) -> None:
        super().__init__(options, stack)
        self.clip = self.clip_of(options, stack)

    @classmethod
    def clip_of(cls, options: Any, stack: StackShape) -> int:
        """Return k, the largest distance with a row of its own."""
        return tables.clip_of(options.clip, stack)

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, 2 * cls.clip_of(options, stack) + 1, stack.head_dim)}

    def rows(self, positions: Positions) -> Tensor | slice:
        """Return the table row of each distance between the queries and keys of these positions."""
        return tables.rows_of(positions, self.clip)

    def row_of(self, delta: Tensor) -> Tensor:
        """Return the table rows of the distances `delta`."""
        return delta.clamp(-self.clip, self.clip) + self.clip

    def literal(self, positions: Positions, layer: Layer) -> Tensor:
        """Return a_ij for all pairs, [h, Q, K] or [h, Q, K, D]; only the slow reference formulas use this method."""
        return tables.of_layer(self.weight, layer.rank, self.stack.heads)[:, self.row_of(positions.delta)]
