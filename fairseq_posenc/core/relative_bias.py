"""Define the base class of encodings that add one number per distance to the logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..ops import shifting
from ..ops.precision import promoted
from ..positions import Positions
from . import tables
from .base import StackShape
from .caches import CachingEncoding
from .relative_table import RelativeTable
from .shared_bias import SharedBias


class RelativeBias(SharedBias, CachingEncoding):
    """Add bias[i, j] = f(j - i) to the logits. A subclass implements f as the method `by_distance`.

    The property `layer_tables` names the tables that f reads, by default all parameters of the encoding.
    """

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        """Return the bias at each of the distances j - i from a layer's tables: [1 or h, len(distances)]."""
        raise TypeError(f"{type(self).__name__} does not implement the method by_distance()")

    @property
    def same_in_all_layers(self) -> bool:
        """Return whether all layers have the same bias."""
        return all(len(getattr(self, name)) == 1 for name in self.layer_tables)

    def parts(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the bias of all distances if all layers share the bias, otherwise each layer's tables."""
        return [{"vector": self._shared(positions)}] if self.same_in_all_layers else super().parts(positions)

    def small(self, part: Mapping[str, Tensor]) -> bool:
        return True

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        return shifting.to_pairs(self._vector(tensors, positions), positions)

    def _vector(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        return tensors["vector"] if "vector" in tensors else self.by_distance(tensors, positions.distances)

    def _shared(self, positions: Positions) -> Tensor:
        """Return the shared bias of the L distances, [1 or h, L].

        In evaluation mode, the bias of all distances within N >= K columns is cached, and this method returns a slice
        of it. Nothing is cached if the caller gives its own positions, because their distances differ too much between
        batches.
        """
        shared = {name: getattr(self, name)[0] for name in self.layer_tables}
        if positions.ids is not None:
            return self.by_distance(shared, positions.distances)
        depends_on = [*self.learned.values(), *self.buffers()]
        vector, longest = self._cache.get(
            positions.key_length,
            depends_on,
            lambda n: self.by_distance(shared, torch.arange(1 - n, n, device=positions.device)),
            positions,
            training=self.training,
        )
        return vector[:, longest - positions.key_length : longest - 1 + positions.query_length]


class DistanceScalars(RelativeTable, RelativeBias):
    """Add bias[i, j] = w[clip(j - i, -k, k)] to the logits: one learned number per distance from -k to k."""

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, 2 * cls.clip_of(options, stack) + 1)}

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        return promoted(tensors["weight"]).index_select(-1, self.row_of(distances))
