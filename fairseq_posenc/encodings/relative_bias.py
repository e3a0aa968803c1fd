"""Base of the encodings that add one number a distance: content-free relative biases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ..positions import Positions
from . import tables, toeplitz
from .base import Layer, PositionEncoding, StackShape
from .bias_cache import BiasCache


class RelativeBias(PositionEncoding):
    """bias[i, j] = f(j - i). Subclasses give `by_distance`; a table, if any, is `self.weight`."""

    weight: Tensor | None

    def __init__(self, options: Any, stack: StackShape) -> None:
        super().__init__(options, stack)
        self._cache = BiasCache()
        self.register_parameter("weight", None)

    @abstractmethod
    def by_distance(self, table: Tensor | None, positions: Positions) -> Tensor:
        """[1 or h, L], the bias at each of `positions.distances`, from a layer's [1 or h, R] table."""

    @property
    def same_in_all_layers(self) -> bool:
        """Whether one bias serves the whole stack."""
        return self.weight is None or self.weight.shape[0] == 1

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        if self.weight is not None and not self.same_in_all_layers:
            return [{"weight": part} for part in tables.hand_out(self.weight, self.stack)]
        table = None if self.weight is None else self.weight[0]
        depends_on: Sequence[Tensor] = [*self.parameters(), *self.buffers()]
        shared = self._cache.get(positions, depends_on, lambda where: self._matrix(table, where))
        return [{"bias": shared} for _ in range(self.stack.layers)]

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        if "bias" in layer.tensors:
            return layer.tensors["bias"]
        return self._matrix(layer.tensors["weight"], positions)

    def train(self, mode: bool = True) -> RelativeBias:
        self._cache.clear()
        return super().train(mode)

    def _matrix(self, table: Tensor | None, positions: Positions) -> Tensor:
        return toeplitz.spread(self.by_distance(table, positions), positions)[None]
