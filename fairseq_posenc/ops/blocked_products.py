"""Products with the vectors of all relative distances, a block of rows at a time, forward and backward.

A row r and a column c are c - r apart. A block of rows needs only the distances that occur in it, its window: half
of the products of all rows with all distances, and the temporaries stay small. Legend: G = B h matrices, R rows,
C columns, D head width, L = R + C - 1 distances: the vector of (r, c) is entry c - r + R - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import cpp
from .precision import promoted

#: rows of a block by the number of rows: small windows cost fewer products, and more calls
SMALL_BLOCK, LARGE_BLOCK, FEW_ROWS = 32, 64, 256
#: rows of a copy from which copies cost less than a choice
LEAST_COPIED = 16
#: numbers of each of a few matrices that are multiplied again and again
CACHED = 1 << 18


class Terms(NamedTuple):
    """What is added for each pair: q_i . (vector of j - i) + k_j . (another vector of j - i) + scale * q'_i . k'_j.

    Each of the three may be left out; both of its tensors are then None. Gradients come in the same order.

    Args:
        q, k: [..., Q, D] and [..., K, D].
        for_queries, for_keys: tables [1 or h, Q+K-1, D] in the order of the distances.
        content_q, content_k: q' and k', shaped as q and k.
    """

    q: Any
    k: Any
    for_queries: Any
    for_keys: Any
    content_q: Any
    content_k: Any


@dataclass(frozen=True)
class Vectors:
    """Hold the vectors of all distances.

    Args:
        table: [1 or h, L, D].
        first, last: entries up to `first` hold the same vector, and so do those from `last` on.
    """

    table: Tensor
    first: int
    last: int

    def flipped(self) -> Vectors:
        """Return the vectors as the columns see them: the distances run backwards."""
        end = self.table.shape[-2] - 1
        return Vectors(self.table.flip(-2), end - self.last, end - self.first)


@dataclass(frozen=True)
class _Block:
    """Describe the rows start .. stop-1. The columns before `left` share a vector, and so do those from `right` on."""

    start: int
    stop: int
    left: int
    right: int
    rows: int

    @property
    def width(self) -> int:
        """Return the number of distances in the window."""
        return self.right - self.left + self.stop - self.start - 1

    @property
    def window(self) -> slice:
        """Return the entries of the columns left .. right-1."""
        begin = self.left + self.rows - self.stop
        return slice(begin, begin + self.width)


def _blocks(rows: int, columns: int, vectors: Vectors) -> Iterator[_Block]:
    narrow = vectors.last - vectors.first < rows  # what a large block has more than it needs would be most of it
    size = SMALL_BLOCK if rows <= FEW_ROWS or narrow else LARGE_BLOCK
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        left = min(max(vectors.first + start - rows + 2, 0), columns)
        right = max(min(max(vectors.last + stop - rows, 0), columns), left)
        yield _Block(start, stop, left, right, rows)


def _by_column(window: Tensor, columns: int) -> Tensor:
    """View products by distance, [1 or h, samples, rows, columns + rows - 1], by column.

    Returns:
        [samples, 1 or h, rows, columns].
    """
    tables, samples, rows, width = window.shape
    strides = (rows * width, samples * rows * width, max(width - 1, 1), 1)
    return window.as_strided((samples, tables, rows, columns), strides, rows - 1)


def _by_sample(x: Tensor, tables: int) -> Tensor:
    """View [G, ...] as [samples, 1 or h, ...]."""
    return x.unflatten(0, (-1, tables))


def _behind(x: Tensor, tables: int) -> Tensor:
    """Put rows that share a table behind each other, for one product: [G, rows, D] -> [1 or h, samples * rows, D]."""
    return _by_sample(x, tables).transpose(0, 1).flatten(1, 2)


def _window(x: Tensor, table: Tensor) -> Tensor:
    """Return the products of x [G, rows, D] with entries [1 or h, W, D]: [1 or h, samples, rows, W]."""
    return torch.bmm(_behind(x, len(table)), table.mT).unflatten(1, (-1, x.shape[1]))


def of_groups(table: Tensor, groups: int) -> Tensor:
    """Repeat tables for every sample: [1 or h, ...] -> [G, ...]."""
    if len(table) == 1:
        return table.expand(groups, -1, -1)
    return table.repeat(groups // len(table), 1, 1)


def fill(out: Tensor, x: Tensor, vectors: Vectors, put: Callable[[Tensor, Tensor], object] = Tensor.copy_) -> None:
    """Write x[g, r] . vector of (r, c) to out[g, r, c], or add it with Tensor.add_; out [G, R, C], x [G, R, D]."""
    columns, table = out.shape[-1], vectors.table
    ends = _ends(x, vectors)
    for block in _blocks(x.shape[1], columns, vectors):
        rows = slice(block.start, block.stop)
        if block.left:
            put(out[:, rows, : block.left], ends[vectors.first][:, rows])
        if block.right < columns:
            put(out[:, rows, block.right :], ends[vectors.last][:, rows])
        if block.right > block.left:
            window = _window(x[:, rows], table[:, block.window])
            near = out[:, rows, block.left : block.right]
            put(_by_sample(near, len(table)), _by_column(window, near.shape[-1]))


def fill_across(out: Tensor, x: Tensor, vectors: Vectors) -> None:
    """Write x[g, c] . vector of (r, c) to out[g, r, c]; x belongs to the columns, [G, C, D].

    Distances that share a vector are written first, all in one go, and the others then by columns.
    """
    rows, columns = out.shape[1:]
    flipped = vectors.flipped()
    far = [end.mT for end in _ends(x, flipped).values()]  # to the right of a row, to its left
    if len(far) == 2:
        _fill_far(out, far[1], far[0], vectors)
    elif far:
        out.copy_(far[0])
    for block in _blocks(columns, rows, flipped):
        if block.right > block.left:
            window = _window(x[:, block.start : block.stop], flipped.table[:, block.window])
            if _natively(out):
                cpp.across(out, window, block.start, block.left)
            else:
                near = _by_sample(out.mT[:, block.start : block.stop, block.left : block.right], len(flipped.table))
                near.copy_(_by_column(window, near.shape[-1]))


def _natively(pairs: Tensor) -> bool:
    """Return whether C++ may transpose these: four times as fast as a strided copy."""
    single = pairs.device.type == "cpu" and pairs.dtype == torch.float32 and pairs.is_contiguous()
    return single and cpp.works("clipped_products")


def _fill_far(out: Tensor, left: Tensor, right: Tensor, vectors: Vectors) -> None:
    """Fill out [G, R, C] with what is far to the left of a row and to its right, [G, 1, C] each.

    What is near is overwritten later. So some rows at a time can change sides at one column, where all of them are
    near, which takes a third of the time of a choice for each number.
    """
    rows, columns = out.shape[1:]
    middle = (vectors.first + vectors.last) // 2 + 2 - rows  # from a row's number to the column where it changes sides
    size = vectors.last - vectors.first - 1
    if size < LEAST_COPIED or out.device.type != "cpu":
        torch.where(torch.ones(rows, columns, dtype=torch.bool, device=out.device).triu(middle), right, left, out=out)
        return
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        change = min(max((start + stop) // 2 + middle, 0), columns)
        out[:, start:stop, :change] = left[..., :change]
        out[:, start:stop, change:] = right[..., change:]


def _ends(x: Tensor, vectors: Vectors) -> dict[int, Tensor]:
    """Return x times the vectors that stand for more than one distance, by their entries: [G, R, 1] each."""
    entries = (entry for entry in (vectors.first, vectors.last) if 0 <= entry < vectors.table.shape[-2])
    return {entry: torch.bmm(x, of_groups(vectors.table[:, entry, :, None], len(x))) for entry in entries}


def gradients(grad: Tensor, x: Tensor, vectors: Vectors) -> tuple[Tensor, Tensor]:
    """Return the gradients of x [G, R, D] and of the table, given that of `fill`'s output, [G, R, C].

    The gradient of the table [1 or h, L, D] is in at least float32.
    """
    table, tables, across = vectors.table, len(vectors.table), grad.stride(-1) != 1 and _natively(grad.mT)
    for_x, for_table = torch.zeros_like(x), torch.zeros_like(promoted(table))
    window: Tensor | None = None
    for block in _blocks(x.shape[1], grad.shape[-1], vectors):
        rows = slice(block.start, block.stop)
        far = ((vectors.first, grad[:, rows, : block.left]), (vectors.last, grad[:, rows, block.right :]))
        for entry, by_pair in far:
            if by_pair.shape[-1]:
                total = by_pair.sum(-1, keepdim=True)
                for_x[:, rows] += total * of_groups(table[:, entry : entry + 1], len(x))
                collect(for_table, slice(entry, entry + 1), total, x[:, rows])
        if block.right > block.left:
            near = _by_sample(grad[:, rows, block.left : block.right], tables)
            shape = (tables, len(near), near.shape[2], block.width)
            if window is None or window.shape != shape:
                window = grad.new_zeros(shape)  # its corners stay zero from block to block
            if across:
                cpp.across_backward(grad.mT, window, block.start, block.left)
            else:
                _by_column(window, near.shape[-1]).copy_(near)
            by_entry = window.flatten(1, 2)
            products = torch.bmm(by_entry, table[:, block.window])  # baddbmm_ into a part is a product a matrix
            _by_sample(for_x[:, rows], tables).add_(products.unflatten(1, shape[1:3]).transpose(0, 1))
            for_table[:, block.window] += torch.bmm(by_entry.mT, _behind(x[:, rows], tables))
    return for_x, for_table


def collect(for_table: Tensor, entries: slice, by_entry: Tensor, x: Tensor) -> None:
    """Add by_entry^T x to for_table[entries], summed over the matrices that share it: [G, rows, W], [G, rows, D]."""
    tables = len(for_table)
    if tables == 1:
        product = torch.mm(by_entry.reshape(-1, by_entry.shape[-1]).t(), x.reshape(-1, x.shape[-1]))[None]
    else:
        product = torch.bmm(by_entry.transpose(-1, -2), x).unflatten(0, (-1, tables)).sum(0)
    for_table[:, entries] += product


def in_cache(*pairs: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield a few of the matrices [G, Q, K] at a time: what one product wrote, a CPU then reads from its cache."""
    groups, queries, keys = pairs[0].shape
    size = max(1, CACHED // max(1, queries * keys)) if pairs[0].device.type == "cpu" else groups
    return zip(*(x.split(size) for x in pairs), strict=True)


@dataclass(frozen=True)
class Blocked:
    """Sums and gated products of pairs [G, Q, K], block by block; see `Vectors` for `first` and `last`."""

    first: int
    last: int

    def vectors(self, table: Tensor) -> Vectors:
        """Return the vectors of a table [1 or h, Q+K-1, D]."""
        return Vectors(table, self.first, self.last)

    def fill(self, out: Tensor, terms: Terms, scale: float) -> None:
        """Write the sum of the terms into `out` [G, Q, K]."""
        if terms.k is not None:
            fill_across(out, terms.k, self.vectors(terms.for_keys))
        if terms.q is not None:
            fill(out, terms.q, self.vectors(terms.for_queries), Tensor.copy_ if terms.k is None else Tensor.add_)
        if terms.content_q is not None:
            out.baddbmm_(terms.content_q, terms.content_k.mT, alpha=scale)

    def fill_backward(self, grad: Tensor, terms: Terms, totals: Terms) -> None:
        """Write the gradients of q and k into `totals` and add those of their tables, given that of the sums."""
        if terms.q is not None:
            for_q, for_table = gradients(grad, terms.q, self.vectors(terms.for_queries))
            totals.q.copy_(for_q)
            totals.for_queries.add_(for_table)
        if terms.k is not None:
            for_k, for_table = gradients(grad.mT, terms.k, self.vectors(terms.for_keys).flipped())
            totals.k.copy_(for_k)
            totals.for_keys.add_(for_table.flip(-2))

    def gate(self, content: Tensor, q: Tensor, k: Tensor, table: Tensor, offset: float) -> tuple[Tensor, ...]:
        """Multiply the content [G, Q, K] by both gates in place, and return what `gate_backward` needs of them.

        That is the gate of the keys, which costs more to make than that of the queries.
        """
        vectors, of_key = self.vectors(table), torch.empty_like(content)
        fill_across(of_key, k, vectors)
        of_key, of_query = _raised(of_key, offset), _query_gate(q, vectors, offset, content)
        for product, key, query in in_cache(content, of_key, of_query):
            product.mul_(key).mul_(query)
        return (of_key,)

    def gate_backward(
        self, content: Tensor, grad: Tensor, terms: Terms, offset: float, gates: tuple[Tensor, ...], totals: Terms
    ) -> Tensor:
        """Do as `fill_backward`, with one table, `for_queries`; overwrite the content and return its gradient."""
        (of_key,), vectors = gates, self.vectors(terms.for_queries)
        of_query, for_key = _query_gate(terms.q, vectors, offset, of_key), torch.empty_like(content)
        for product, query, key, by_pair, out in in_cache(content, of_query, of_key, grad, for_key):
            torch.mul(product.mul_(by_pair), query, out=out)
            product.mul_(key)
            query.mul_(by_pair).mul_(key)
        for_query, for_content = content, of_query
        for_k, for_table = gradients(for_key.mT, terms.k, vectors.flipped())
        del for_key
        for_q, also = gradients(for_query, terms.q, vectors)
        totals.q.copy_(for_q)
        totals.k.copy_(for_k)
        totals.for_queries.add_(for_table.flip(-2)).add_(also)
        return for_content


def _query_gate(q: Tensor, vectors: Vectors, offset: float, like: Tensor) -> Tensor:
    """Return o + q_i . a_ij, [G, Q, K]."""
    gate = torch.empty_like(like)
    fill(gate, q, vectors)
    return _raised(gate, offset)


def _raised(gate: Tensor, offset: float) -> Tensor:
    """Add the offset in place."""
    return gate.add_(offset) if offset else gate
