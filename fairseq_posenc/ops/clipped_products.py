"""Products with the vectors of all distances where far ones share a vector, on a CPU: with far fewer numbers.

A query, or a key, has only as many products as there are vectors: a quarter of the keys, say. They stay so few; one
pass in C++ (cpp.py) adds them to the content, or multiplies them in (M4M).

Legend: as in blocked_products.py; E vectors that are not the same, from `first` to `last`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from . import cpp
from .blocked_products import Terms, collect, of_groups


@dataclass(frozen=True)
class Clipped:
    """Sums and gated products of pairs [G, Q, K], float32, of E products for each query and each key.

    `first` and `last` are those of `blocked_products.Vectors`. In a decoder with memory the last entry may be beyond
    the table.
    """

    first: int
    last: int

    def serves(self, queries: int, k: Tensor | None, *others: Tensor | None) -> bool:
        """Return whether this is possible and worth it: distances share a vector, float32 on a CPU, a compiler.

        A key meets as many distances as there are queries; where they are fewer than the vectors, blocks are less work.
        """
        tensors = [x for x in (k, *others) if x is not None]
        single = all(x.device.type == "cpu" and x.dtype == torch.float32 for x in tensors)
        worth = self.first >= 0 and (k is None or queries >= self.last - self.first)
        return worth and single and cpp.works("clipped_products")

    @property
    def _entries(self) -> slice:
        return slice(self.first, self.last + 1)

    def _vectors(self, table: Tensor, x: Tensor) -> Tensor:
        """Return the E vectors of the table [1 or h, Q+K-1, D] for each matrix of x: [G, E, D]."""
        return of_groups(table[:, self._entries], len(x))

    def _products(self, x: Tensor | None, table: Tensor) -> Tensor | None:
        """Return the products of x [G, R, D] with the E vectors, [G, R, E]."""
        return None if x is None else torch.bmm(x, self._vectors(table, x).mT)

    def fill(self, out: Tensor, terms: Terms, scale: float) -> None:
        """Write the sum of the terms into `out` [G, Q, K]."""
        of_query, of_key = self._products(terms.q, terms.for_queries), self._products(terms.k, terms.for_keys)
        if terms.content_q is not None:
            torch.bmm(terms.content_q * scale, terms.content_k.mT, out=out)
        cpp.spread(out, of_query, of_key, self.first, add=terms.content_q is not None)

    def fill_backward(self, grad: Tensor, terms: Terms, totals: Terms) -> None:
        """Write the gradients of q and k into `totals` and add those of their tables, given that of the sums."""
        by_query, by_key = (
            None if x is None else x.new_zeros(*x.shape[:2], table[:, self._entries].shape[1])
            for x, table in ((terms.q, terms.for_queries), (terms.k, terms.for_keys))
        )
        cpp.spread_backward(grad.contiguous(), by_query, by_key, self.first)
        self._collect(by_query, terms.q, terms.for_queries, totals.q, totals.for_queries)
        self._collect(by_key, terms.k, terms.for_keys, totals.k, totals.for_keys)

    def _collect(self, by_entry: Tensor | None, x: Tensor, table: Tensor, for_x: Tensor, for_table: Tensor) -> None:
        """Write the gradient of x and add that of its table, given that of their products [G, R, E]."""
        if by_entry is not None:
            for_x.copy_(torch.bmm(by_entry, self._vectors(table, x)))
            collect(for_table, self._entries, by_entry, x)

    def gate(self, content: Tensor, q: Tensor, k: Tensor, table: Tensor, offset: float) -> tuple[Tensor, ...]:
        """Multiply the content [G, Q, K] by both gates in place, and return the few products that they are made of."""
        of_query, of_key = (torch.bmm(x, self._vectors(table, x).mT) for x in (q, k))
        cpp.gates(content, of_query, of_key, self.first, offset)
        return of_query, of_key

    def gate_backward(
        self, content: Tensor, grad: Tensor, terms: Terms, offset: float, gates: tuple[Tensor, ...], totals: Terms
    ) -> Tensor:
        """Do as `fill_backward`, with one table, `for_queries`; overwrite the content and return its gradient."""
        of_query, of_key = gates
        by_query, by_key = cpp.gates_backward(content, grad.contiguous(), of_query, of_key, self.first, offset)
        self._collect(by_query, terms.q, terms.for_queries, totals.q, totals.for_queries)
        self._collect(by_key, terms.k, terms.for_queries, totals.k, totals.for_queries)
        return content
