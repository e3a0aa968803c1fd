"""Define the base classes of relative encodings: tables with a row for each distance, and biases of pairs of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import Tensor

from ..ops import shifting
from ..ops.precision import promoted
from ..positions import Positions
from . import tables
from .base import Layer, PositionEncoding, StackShape
from .caches import CachingEncoding

#: Types of devices on which a bias that all layers share is computed once for all pairs. Elsewhere, the layers compute
#: it from `small` parts within their compiled attention, which reads less memory.
ONCE = ("cpu",)


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


class SharedBias(PositionEncoding):
    """Add a bias to the logits that depends on positions only. If all layers share it, the stack computes it once.

    A subclass implements `bias_of`, and `parts` if `bias_of` reads more than tables.
    """

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        """Return the bias of one entry of `parts`, [1 or B, 1 or h, Q, K]."""
        raise TypeError(f"{type(self).__name__} does not implement the method bias_of()")

    def parts(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the tensors from which each layer computes its bias, or a single entry if all layers share it."""
        by_layer = super().per_layer(positions)
        return by_layer[:1] if all(len(table) == 1 for table in self.learned.values()) else by_layer

    def small(self, part: Mapping[str, Tensor]) -> bool:
        """Return whether an entry of `parts` is much smaller than the bias of all pairs, and easily turned into it."""
        return False

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return for each layer the bias of all pairs or, if layers compute it themselves, the entry of `parts`."""
        parts = self.parts(positions)
        if len(parts) > 1:
            return parts
        shared = parts[0]
        if positions.device.type in ONCE or not self.small(shared):
            shared = {"bias": self.bias_of(shared, positions)}
        return [dict(shared) for _ in range(self.stack.layers)]

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        tensors = layer.tensors
        return tensors["bias"] if "bias" in tensors else self.bias_of(tensors, positions)


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
        if not self.same_in_all_layers:
            return super().parts(positions)
        by_distance = partial(self.by_distance, {name: getattr(self, name)[0] for name in self.layer_tables})
        return [{"vector": self.of_distances(positions, [*self.learned.values(), *self.buffers()], by_distance)}]

    def small(self, part: Mapping[str, Tensor]) -> bool:
        return True

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        return shifting.to_pairs(self._vector(tensors, positions), positions)

    def _vector(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        return tensors["vector"] if "vector" in tensors else self.by_distance(tensors, positions.distances)


class DistanceScalars(RelativeTable, RelativeBias):
    """Add bias[i, j] = w[clip(j - i, -k, k)] to the logits: one learned number per distance from -k to k."""

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, 2 * cls.clip_of(options, stack) + 1)}

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        return promoted(tensors["weight"]).index_select(-1, self.row_of(distances))
