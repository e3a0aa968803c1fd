"""Multiply queries or keys by the vectors of distances on a CPU, if all distances beyond a limit share a vector.

Each query or key is multiplied only once by each of the different vectors, so there are often far fewer products than
query-key pairs. C++ (cpp.py) then adds these products to the query-key products q·k in one pass, or multiplies q·k by
them (M4M). The products with the vectors are never copied to a tensor of all pairs.

See blocked_products.py for the legend. E is the number of different vectors: the entries `first` to `last` of the
table.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from . import cpp
from .blocked_products import Terms, collect, of_groups


@dataclass(frozen=True)
class Clipped:
    """Compute the same sums and gated products as `Blocked` in float32, from E products for each query and each key.

    `first` and `last` have the same meaning as in `blocked_products.Vectors`. In a decoder with memory, `last` may be
    beyond the end of the table.
    """

    first: int
    last: int

    def serves(self, queries: int, k: Tensor | None, *others: Tensor | None) -> bool:
        """Return whether this kernel can compute the products and is faster than `Blocked`.

        The kernel needs float32 tensors on a CPU, a C++ compiler and distances that share a vector. If keys are
        multiplied and there are fewer queries than vectors, `Blocked` is faster, because it computes only as many
        products per key as there are queries.
        """
        tensors = [x for x in (k, *others) if x is not None]
        single = all(x.device.type == "cpu" and x.dtype == torch.float32 for x in tensors)
        worth = self.first >= 0 and (k is None or queries >= self.last - self.first)
        return worth and single and cpp.works("clipped_products")

    @property
    def _entries(self) -> slice:
        return slice(self.first, self.last + 1)

    def _vectors(self, table: Tensor, x: Tensor) -> Tensor:
        """Return the E different vectors of the table [1 or h, Q+K-1, D], repeated for each matrix of x: [G, E, D]."""
        return of_groups(table[:, self._entries], len(x))

    def _products(self, x: Tensor | None, table: Tensor) -> Tensor | None:
        """Return the products of x [G, R, D] with the E different vectors of the table, [G, R, E]."""
        return None if x is None else torch.bmm(x, self._vectors(table, x).mT)

    def fill(self, out: Tensor, terms: Terms, scale: float) -> None:
        """Write the sum of `terms` for all pairs into `out` [G, Q, K]; `scale` multiplies q'_i·k'_j."""
        of_query, of_key = self._products(terms.q, terms.for_queries), self._products(terms.k, terms.for_keys)
        if terms.content_q is not None:
            torch.bmm(terms.content_q * scale, terms.content_k.mT, out=out)
        cpp.spread(out, of_query, of_key, self.first, add=terms.content_q is not None)

    def fill_backward(self, grad: Tensor, terms: Terms, totals: Terms) -> None:
        """Write the gradients of q and k into `totals`, and add the gradients of both tables to the tables of `totals`.

        Args:
            grad: Gradient of the sums that `fill` wrote, [G, Q, K].
            terms: The tensors that `fill` received.
            totals: Tensors for the gradients. The method overwrites `totals.q` and `totals.k`, and adds to the tables
                of `totals`.
        """
        by_query, by_key = (
            None if x is None else x.new_zeros(*x.shape[:2], table[:, self._entries].shape[1])
            for x, table in ((terms.q, terms.for_queries), (terms.k, terms.for_keys))
        )
        cpp.spread_backward(grad.contiguous(), by_query, by_key, self.first)
        self._collect(by_query, terms.q, terms.for_queries, totals.q, totals.for_queries)
        self._collect(by_key, terms.k, terms.for_keys, totals.k, totals.for_keys)

    def _collect(self, by_entry: Tensor | None, x: Tensor, table: Tensor, for_x: Tensor, for_table: Tensor) -> None:
        """Write the gradient of x into `for_x` and add the gradient of the table to `for_table`.

        Args:
            by_entry: Gradient of the products of x with the E vectors, [G, R, E]; None if x is not multiplied.
            x: [G, R, D].
            table: [1 or h, Q+K-1, D].
            for_x, for_table: Gradients of x and of the table.
        """
        if by_entry is not None:
            for_x.copy_(torch.bmm(by_entry, self._vectors(table, x)))
            collect(for_table, self._entries, by_entry, x)

    def gate(self, content: Tensor, q: Tensor, k: Tensor, table: Tensor, offset: float) -> tuple[Tensor, ...]:
        """Multiply the query-key products `content` [G, Q, K] by both gates of M4M in place (see `Blocked`).

        Returns:
            The products of the queries and of the keys with the E vectors, [G, Q, E] and [G, K, E].
        """
        of_query, of_key = (torch.bmm(x, self._vectors(table, x).mT) for x in (q, k))
        cpp.gates(content, of_query, of_key, self.first, offset)
        return of_query, of_key

    def gate_backward(
        self, content: Tensor, grad: Tensor, terms: Terms, offset: float, gates: tuple[Tensor, ...], totals: Terms
    ) -> Tensor:
        """Return the gradient of `content`, and put the other gradients of `gate` into `totals`; see `fill_backward`.

        Both gates use the table `terms.for_queries`. This method overwrites `content`, the query-key products
        [G, Q, K] before `gate`.
        """
        of_query, of_key = gates
        by_query, by_key = cpp.gates_backward(content, grad.contiguous(), of_query, of_key, self.first, offset)
        self._collect(by_query, terms.q, terms.for_queries, totals.q, totals.for_queries)
        self._collect(by_key, terms.k, terms.for_queries, totals.k, totals.for_queries)
        return content
