"""Base of the encodings that learn a table with one row per clipped distance j - i."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..positions import Positions
from . import tables
from .base import Layer, PositionEncoding, StackShape


class RelativeTable(PositionEncoding):
    """a_ij = w[clip(j - i, -k, k)], a vector of D numbers unless a subclass overrides `shapes`.

    The options of a subclass include `share`, `init`, `init_std` and, unless it overrides `clip_of`, `clip`.
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
        """Return the table row of each of the L distances."""
        return tables.rows_of(positions, self.clip)

    def row_of(self, delta: Tensor) -> Tensor:
        """Return the table rows of the distances `delta`."""
        return delta.clamp(-self.clip, self.clip) + self.clip

    def literal(self, positions: Positions, layer: Layer) -> Tensor:
        """Return a_ij for all pairs, [h, Q, K] or [h, Q, K, D]; this is for references."""
        return tables.of_layer(self.weight, layer.index, self.stack.heads)[:, self.row_of(positions.delta)]
