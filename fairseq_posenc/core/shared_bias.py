"""Define the base class of encodings that add a bias to the logits, where the bias depends on positions only.

If all layers share the bias, it is computed once per forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from ..positions import Positions
from .base import Layer, PositionEncoding

#: Types of devices on which a bias that all layers share is computed once for all pairs. Elsewhere, the layers compute
#: it from `small` parts within their compiled attention, which reads less memory.
ONCE = ("cpu",)


class SharedBias(PositionEncoding):
    """Add a bias to the logits. A subclass implements `bias_of`, and `parts` if `bias_of` reads more than tables."""

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
