"""Describe how encodings change the logits, by tables that a kernel reads pair by pair, without a tensor of all pairs.

Legend: B batch, h heads, Q queries, K keys, D head width, R rows. The numbers b, h, i, j are the sample, the head, the
row of the query and the column of the key; FlexAttention calls `at` with zero-dimensional tensors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from ..ops import toeplitz
from ..ops.precision import promoted
from ..positions import Positions


class Term(Protocol):
    """Give a number for each pair of a query and a key, which a kernel reads from the table `numbers()`."""

    @property
    def width(self) -> int:
        """Return how many numbers the table holds per sample, head and token; 0 if content has no effect on them."""

    def numbers(self) -> Tensor:
        """Return the table in at least float32, so that gradients from many pairs are summed in float32."""

    def at(self, numbers: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """Return the number for query i and key j of head h in sample b."""


@dataclass(frozen=True)
class Rows:
    """Say which table row belongs to each pair: the row of its distance j - i or, for pairs with [CLS], a special row.

    Args:
        last: Q - 1 as a zero-dimensional tensor, because a Python number would be a constant of the compiled kernel.
        by_distance: Row of each of the L distances, [L]; None means that each distance has its own row.
        offset: Column of the first query, as a zero-dimensional tensor.
        cls_column: Column of [CLS], [1 or B]; None means that [CLS] is an ordinary token.
        special: The row for all pairs whose query is [CLS]. All other pairs whose key is [CLS] use row `special` + 1.
    """

    last: Tensor
    by_distance: Tensor | None = None
    offset: Tensor | None = None
    cls_column: Tensor | None = None
    special: Tensor | None = None

    @classmethod
    def of(cls, positions: Positions, rows: Tensor | slice | None = None, *, special: int | None = None) -> Rows:
        """Return the `Rows` of the given positions.

        Args:
            positions: Positions of the queries and keys.
            rows: Row of each of the L distances; a slice or None means that each distance has its own row, from 0 on.
            special: Row of the pairs whose query is [CLS] (see the class); None treats [CLS] as an ordinary token.
        """

        def number(value: int) -> Tensor:
            return torch.full((), value, device=positions.device)

        by_distance = rows if isinstance(rows, Tensor) else None
        last = number(positions.query_length - 1)
        if special is None:
            return cls(last, by_distance)
        return cls(last, by_distance, number(positions.offset), positions.cls_column, number(special))

    def at(self, b: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """Return the row of a pair."""
        distance = j - i + self.last
        row = distance if self.by_distance is None else self.by_distance[distance]
        if self.cls_column is None or self.offset is None or self.special is None:
            return row
        column = self.cls_column[b if len(self.cls_column) > 1 else 0]
        of_key = torch.where(j == column, self.special + 1, row)
        return torch.where(i + self.offset == column, self.special, of_key)


@dataclass(frozen=True)
class OfDistance:
    """Read one number per row from the table [1 or h, R]."""

    table: Tensor
    rows: Rows
    width = 0

    def numbers(self) -> Tensor:
        """Return the table, [h, R] or, if the heads share it, [R].

        The axis of heads is left out because torch 2.8 does not accept the number 0 as the index of a head if the
        other indices are tensors.
        """
        return promoted(self.table if len(self.table) > 1 else self.table[0])

    def at(self, numbers: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        row = self.rows.at(b, i, j)
        return numbers[row] if numbers.dim() == 1 else numbers[h, row]


@dataclass(frozen=True)
class OfToken:
    """Compute the product of a token's vector with the vector of the pair's row, plus `offset`.

    Args:
        x: Queries [B, h, Q, D] or keys [B, h, K, D].
        vectors: Vectors [1 or h, R, D].
        rows: The row of each pair.
        offset: Number that is added to every product.
    """

    x: Tensor
    vectors: Tensor
    rows: Rows
    offset: float = 0.0

    @property
    def width(self) -> int:
        return self.vectors.shape[-2]

    def numbers(self) -> Tensor:
        """Return the products of all tokens with all rows, [B, h, Q or K, R]."""
        products = promoted(toeplitz.with_rows(self.x, self.vectors.to(self.x.dtype)))
        return products + self.offset if self.offset else products


class OfQuery(OfToken):
    """Compute q_i·a + offset, where a is the vector of the pair's row."""

    def at(self, numbers: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return numbers[b, h, i, self.rows.at(b, i, j)]


class OfKey(OfToken):
    """Compute k_j·a + offset, where a is the vector of the pair's row."""

    def at(self, numbers: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return numbers[b, h, j, self.rows.at(b, i, j)]


@dataclass(frozen=True)
class Difference:
    """Compute c_i - c_j for the query's column i and the key's column j; c [B, h, K] holds one number per column.

    Args:
        table: The numbers of all columns.
        offset: Column of the first query, as a zero-dimensional tensor.
    """

    table: Tensor
    offset: Tensor
    width = 1

    @classmethod
    def of(cls, table: Tensor, positions: Positions) -> Difference:
        """Return the `Difference` for the table c, [B, h, K], at the given positions."""
        return cls(table, torch.full((), positions.offset, device=positions.device))

    def numbers(self) -> Tensor:
        return promoted(self.table)

    def at(self, numbers: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return numbers[b, h, i + self.offset] - numbers[b, h, j]


@dataclass(frozen=True)
class OfPair:
    """Read one number per pair from the table [1 or B, 1 or h, N, M].

    Args:
        table: Numbers for all pairs of a row and a column.
        query_kinds: Row of the table for each query, [B, Q]; None means row i for query i.
        key_kinds: Column of the table for each key, [B, K]; None means column j for key j.
    """

    table: Tensor
    query_kinds: Tensor | None = None
    key_kinds: Tensor | None = None
    by_sample: bool = field(init=False)
    by_head: bool = field(init=False)
    width = 0

    def __post_init__(self) -> None:
        """Store which axes the table has, so that `at` does not use the tensor `table`, which may need a gradient."""
        object.__setattr__(self, "by_sample", self.table.shape[0] > 1)
        object.__setattr__(self, "by_head", self.table.shape[1] > 1)

    def numbers(self) -> Tensor:
        """Return the table; leave out the axis of samples or of heads if it has size 1 (see `OfDistance.numbers`)."""
        return promoted(self.table)[slice(None) if self.by_sample else 0, slice(None) if self.by_head else 0]

    def at(self, numbers: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        row = i if self.query_kinds is None else self.query_kinds[b, i]
        column = j if self.key_kinds is None else self.key_kinds[b, j]
        return numbers[(*([b] if self.by_sample else []), *([h] if self.by_head else []), row, column)]


@dataclass(frozen=True)
class Terms:
    """Hold the terms of the logits: each logit is scale * q'·k', times all `factors`, plus all terms in `added`."""

    factors: tuple[Term, ...] = ()
    added: tuple[Term, ...] = ()

    def __add__(self, other: Terms) -> Terms:
        return Terms(self.factors + other.factors, self.added + other.added)

    @property
    def width(self) -> int:
        """Return how many numbers all tables together hold for each sample, head and token."""
        return sum(term.width for term in (*self.factors, *self.added))
