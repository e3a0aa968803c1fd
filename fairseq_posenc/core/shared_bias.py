"""Define the base class of encodings that add a bias to the logits, where the bias depends on positions only.

If all layers share the bias, it is computed once per forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from ..positions import Positions
from .base import Layer, PositionEncoding
from .terms import Term, Terms


class SharedBias(PositionEncoding):
    """Add a bias to the logits. A subclass implements `bias_of`, and `parts` if `bias_of` reads more than tables."""

    #: Name of the part that `term_of` reads, if all layers can get this part instead of the bias of all pairs.
    small_part: ClassVar[str] = ""

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        """Return the bias of one entry of `parts`, [1 or B, 1 or h, Q, K]."""
        raise TypeError(f"{type(self).__name__} does not implement the method bias_of()")

    def parts(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the tensors from which each layer computes its bias, or a single entry if all layers share it."""
        by_layer = super().per_layer(positions)
        return by_layer[:1] if all(len(table) == 1 for table in self.parameters()) else by_layer

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return for each layer the tensors from which it gets its bias.

        If all layers share the bias, these are the bias of all pairs and, if there is one, `small_part`. On a GPU, they
        are `small_part` alone if there is one.
        """
        parts = self.parts(positions)
        if len(parts) > 1:
            return parts
        tensors = {self.small_part: parts[0][self.small_part]} if self.small_part in parts[0] else {}
        if not tensors or positions.device.type == "cpu":  # on a GPU, each layer computes the bias itself
            tensors["bias"] = self.bias_of(parts[0], positions)
        return [dict(tensors) for _ in range(self.stack.layers)]

    def bias(self, positions: Positions, layer: Layer) -> Tensor:
        tensors = layer.tensors
        return tensors["bias"] if "bias" in tensors else self.bias_of(tensors, positions)

    def term_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Term | None:
        """Return the bias as a small table, or None if a kernel must read the bias of all pairs."""
        return None

    def terms(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Terms:
        term = self.term_of(layer.tensors, positions)
        return super().terms(q, k, positions, layer) if term is None else Terms(added=(term,))
