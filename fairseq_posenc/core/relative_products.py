"""Define the base class of encodings that add products of queries, and perhaps of keys, with vectors of distances."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..ops import toeplitz
from ..ops.precision import promoted
from ..positions import Positions
from .base import Layer, PositionEncoding


@dataclass(frozen=True)
class Products:
    """Hold the factors of the products q_i·a[j - i] and, with `for_keys`, k_j·b[j - i].

    Args:
        for_queries: Vectors a, [1 or h, R, D].
        for_keys: Vectors b, [1 or h, R, D], or None.
        rows: Row of each of the L distances.
    """

    q: Tensor
    k: Tensor
    for_queries: Tensor
    for_keys: Tensor | None
    rows: Tensor | slice


class RelativeProducts(PositionEncoding):
    """Provide the base class of encodings that add `Products` to the logits. A subclass implements `products`."""

    def products(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Products:
        """Return the vectors of the distances, and the queries and keys to multiply by them; all may be scaled."""
        raise TypeError(f"{type(self).__name__} does not implement the method products()")

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return self.summed(self.products(q, k, positions, layer), positions, layer)

    @staticmethod
    def summed(x: Products, positions: Positions, layer: Layer) -> Tensor:
        """Return the sum of the products for all pairs, [B, h, Q, K]."""
        of_queries = promoted(toeplitz.query_product(x.q, x.for_queries, positions, x.rows))
        if x.for_keys is None:
            return of_queries
        return of_queries + promoted(toeplitz.key_product(x.k, x.for_keys, positions, x.rows, layer.content))
