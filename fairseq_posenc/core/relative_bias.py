"""Base of the encodings that add one number a distance: content-free relative biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..ops import toeplitz
from ..ops.precision import promoted
from ..positions import Positions
from . import tables
from .base import StackShape
from .caches import CachingEncoding
from .relative_table import RelativeTable
from .shared_bias import SharedBias


class RelativeBias(SharedBias, CachingEncoding):
    """bias[i, j] = f(j - i). Subclasses give `by_distance`; their tables, if any, are `layer_tables`."""

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        """Return the bias at each j - i, from a layer's tables: [1 or h, len(distances)]."""
        raise TypeError(f"{type(self).__name__} does not say its bias at a distance")

    @property
    def same_in_all_layers(self) -> bool:
        """Whether one bias serves the whole stack."""
        return all(len(getattr(self, name)) == 1 for name in self.layer_tables)

    def parts(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the bias of all distances, or each layer's own tables."""
        return [{"vector": self._shared(positions)}] if self.same_in_all_layers else super().parts(positions)

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        vector = tensors["vector"] if "vector" in tensors else self.by_distance(tensors, positions.distances)
        return toeplitz.spread(vector, positions)[None]

    def _shared(self, positions: Positions) -> Tensor:
        """Return the shared bias of the L = Q+K-1 distances, [1 or h, L]; it is kept for all distances of N columns."""
        shared = {name: getattr(self, name)[0] for name in self.layer_tables}
        depends_on = [*self.parameters(), *self.buffers()]
        vector, longest = self._cache.get(
            positions.key_length,
            depends_on,
            lambda n: self.by_distance(shared, torch.arange(1 - n, n, device=positions.device)),
            training=self.training,
        )
        return vector[:, longest - positions.key_length : longest - 1 + positions.query_length]


class DistanceScalars(RelativeTable, RelativeBias):
    """bias[i, j] = w[clip(j - i, -k, k)]: one number a distance. Beyond n the distances saturate too."""

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, 2 * cls.clip_of(options, stack) + 1)}

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        return promoted(tensors["weight"]).index_select(-1, self.row_of(distances))
