"""Multiply queries or keys by the vectors of their relative distances in blocks of rows, and compute the gradients.

The rows are queries and the columns are keys, or the reverse. The distance from row r to column c is c - r. The window
of a block of rows is the range of distances that occur in the block. Each block is multiplied only by the vectors of
its window. Blocks need about half as many products as a multiplication of all rows by the vectors of all distances.
Temporary tensors also stay small.

Legend: G matrices (one per sample and head), R rows, C columns, D head width, L = R + C - 1 distances. Entry
c - r + R - 1 of a table is the vector of row r and column c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import cpp
from .precision import promoted

#: Rows per block: SMALL_BLOCK for matrices with at most FEW_ROWS rows, otherwise LARGE_BLOCK. Small blocks need fewer
#: products, but more calls.
SMALL_BLOCK, LARGE_BLOCK, FEW_ROWS = 32, 64, 256
#: Copying several rows at a time is faster than `torch.where` from this number of rows on.
LEAST_COPIED = 16
#: Size of the tensors that `in_cache` yields, in numbers; a CPU keeps tensors of this size in its cache.
CACHED = 1 << 18


class Terms(NamedTuple):
    """Hold the tensors of the sum q_i·a[j - i] + k_j·b[j - i] + scale * q'_i·k'_j for all pairs (i, j).

    If one of the three terms is left out, both of its tensors are None. The backward pass uses a second object of
    this class for the gradients of the six tensors.

    Args:
        q, k: [..., Q, D] and [..., K, D].
        for_queries, for_keys: Tables of the vectors a and b, [1 or h, Q+K-1, D], in the order of the distances.
        content_q, content_k: q' and k', with the shapes of q and k.
    """

    q: Any
    k: Any
    for_queries: Any
    for_keys: Any
    content_q: Any
    content_k: Any


@dataclass(frozen=True)
class Vectors:
    """Hold a table with the vectors of all distances, and say which of its entries are equal.

    Args:
        table: The vectors, [1 or h, L, D].
        first, last: All entries up to `first` hold one vector, and all entries from `last` on hold another one.
    """

    table: Tensor
    first: int
    last: int

    def flipped(self) -> Vectors:
        """Return the vectors in reverse order, for products in which rows and columns change places."""
        end = self.table.shape[-2] - 1
        return Vectors(self.table.flip(-2), end - self.last, end - self.first)


@dataclass(frozen=True)
class _Block:
    """Describe the block of the rows from `start` to `stop` - 1 of a matrix with `rows` rows.

    All columns before `left` use one vector, and all columns from `right` on use another one.
    """

    start: int
    stop: int
    left: int
    right: int
    rows: int

    @property
    def width(self) -> int:
        """Return the number of distances between rows of the block and the columns from `left` to `right` - 1."""
        return self.right - self.left + self.stop - self.start - 1

    @property
    def window(self) -> slice:
        """Return the slice of the table that the block needs for the columns from `left` to `right` - 1."""
        begin = self.left + self.rows - self.stop
        return slice(begin, begin + self.width)


def _blocks(rows: int, columns: int, vectors: Vectors) -> Iterator[_Block]:
    narrow = vectors.last - vectors.first < rows  # most products of a large block would not be used
    size = SMALL_BLOCK if rows <= FEW_ROWS or narrow else LARGE_BLOCK
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        left = min(max(vectors.first + start - rows + 2, 0), columns)
        right = max(min(max(vectors.last + stop - rows, 0), columns), left)
        yield _Block(start, stop, left, right, rows)


def _by_column(window: Tensor, columns: int) -> Tensor:
    """View products that are ordered by distance, [1 or h, samples, rows, columns + rows - 1], in the order of columns.

    Returns:
        The products, [samples, 1 or h, rows, columns].
    """
    tables, samples, rows, width = window.shape
    strides = (rows * width, samples * rows * width, max(width - 1, 1), 1)
    return window.as_strided((samples, tables, rows, columns), strides, rows - 1)


def _by_sample(x: Tensor, tables: int) -> Tensor:
    """View a tensor [G, ...] as [samples, `tables`, ...]."""
    return x.unflatten(0, (-1, tables))


def _behind(x: Tensor, tables: int) -> Tensor:
    """Join the rows that use the same table, for one matrix product: [G, rows, D] -> [1 or h, samples * rows, D]."""
    return _by_sample(x, tables).transpose(0, 1).flatten(1, 2)


def _window(x: Tensor, table: Tensor) -> Tensor:
    """Multiply x [G, rows, D] by W vectors `table` [1 or h, W, D], and return [1 or h, samples, rows, W]."""
    return torch.bmm(_behind(x, len(table)), table.mT).unflatten(1, (-1, x.shape[1]))


def of_groups(table: Tensor, groups: int) -> Tensor:
    """Repeat the tables of the heads for every sample: [1 or h, ...] -> [G, ...]."""
    if len(table) == 1:
        return table.expand(groups, -1, -1)
    return table.repeat(groups // len(table), 1, 1)


def fill(out: Tensor, x: Tensor, vectors: Vectors, put: Callable[[Tensor, Tensor], object] = Tensor.copy_) -> None:
    """Write the dot product of x[g, r] and the vector of distance c - r to out[g, r, c].

    Args:
        out: [G, R, C].
        x: [G, R, D].
        vectors: The vectors of all distances.
        put: `Tensor.copy_` to replace the numbers in `out`, or `Tensor.add_` to add the products to these numbers.
    """
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
    """Write the dot product of x[g, c] and the vector of distance c - r to out[g, r, c], where x is [G, C, D].

    First, all pairs (r, c) whose distances share a vector are written, and then all other pairs, in blocks of columns.
    """
    rows, columns = out.shape[1:]
    flipped = vectors.flipped()
    far = [end.mT for end in _ends(x, flipped).values()]  # for distances far to the right, far to the left
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
    """Return whether C++ can transpose the tensor `pairs`. C++ is four times as fast as a strided copy in torch."""
    single = pairs.device.type == "cpu" and pairs.dtype == torch.float32 and pairs.is_contiguous()
    return single and cpp.works("clipped_products")


def _fill_far(out: Tensor, left: Tensor, right: Tensor, vectors: Vectors) -> None:
    """Fill the beginning of each row of `out` [G, R, C] from `left`, and its end from `right`, both [G, 1, C].

    The caller overwrites the middle of each row, where distances have their own vectors. Therefore, all rows of a block
    can change from `left` to `right` at the same column, which lies in the middle of each of these rows. Copying blocks
    of rows takes a third of the time of `torch.where`.
    """
    rows, columns = out.shape[1:]
    middle = (vectors.first + vectors.last) // 2 + 2 - rows  # row r switches at column r + middle
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
    """Return a dictionary from the entries `first` and `last` of the table to the products of x with them, [G, R, 1].

    If `first` or `last` is outside of the table, no distances share a vector on that side, and the dictionary omits
    this entry.
    """
    entries = (entry for entry in (vectors.first, vectors.last) if 0 <= entry < vectors.table.shape[-2])
    return {entry: torch.bmm(x, of_groups(vectors.table[:, entry, :, None], len(x))) for entry in entries}


def gradients(grad: Tensor, x: Tensor, vectors: Vectors) -> tuple[Tensor, Tensor]:
    """Return the gradients of x and of the table, given the gradient [G, R, C] of the output of `fill`.

    The gradient of x has the shape [G, R, D]. The gradient of the table, [1 or h, L, D], is in at least float32.
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
                window = grad.new_zeros(shape)  # only entries that belong to a column are written; others stay zero
            if across:
                cpp.across_backward(grad.mT, window, block.start, block.left)
            else:
                _by_column(window, near.shape[-1]).copy_(near)
            by_entry = window.flatten(1, 2)
            # Do not use baddbmm_ into a view, because torch would then multiply the matrices one by one.
            products = torch.bmm(by_entry, table[:, block.window])
            _by_sample(for_x[:, rows], tables).add_(products.unflatten(1, shape[1:3]).transpose(0, 1))
            for_table[:, block.window] += torch.bmm(by_entry.mT, _behind(x[:, rows], tables))
    return for_x, for_table


def collect(for_table: Tensor, entries: slice, by_entry: Tensor, x: Tensor) -> None:
    """Add the matrix product by_entry^T x to `for_table` at `entries`, summed over the matrices that share a table.

    Args:
        for_table: Gradient of the table, [1 or h, L, D].
        entries: The W entries of the table whose gradients are added.
        by_entry: Gradients of the products with the vectors at `entries`, [G, rows, W].
        x: [G, rows, D].
    """
    tables = len(for_table)
    if tables == 1:
        product = torch.mm(by_entry.reshape(-1, by_entry.shape[-1]).t(), x.reshape(-1, x.shape[-1]))[None]
    else:
        product = torch.bmm(by_entry.transpose(-1, -2), x).unflatten(0, (-1, tables)).sum(0)
    for_table[:, entries] += product


def in_cache(*pairs: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield parts of tensors [G, Q, K], a few matrices at a time, so that a CPU keeps the parts in its cache."""
    groups, queries, keys = pairs[0].shape
    size = max(1, CACHED // max(1, queries * keys)) if pairs[0].device.type == "cpu" else groups
    return zip(*(x.split(size) for x in pairs), strict=True)


@dataclass(frozen=True)
class Blocked:
    """Compute sums of `Terms` and the gated products of M4M for all pairs [G, Q, K], in blocks of rows.

    The query-key product is called the content. A gate is a factor o + q_i·a_ij or o + k_j·a_ij by which the content is
    multiplied. See `Vectors` for `first` and `last`.
    """

    first: int
    last: int

    def vectors(self, table: Tensor) -> Vectors:
        """Return a table [1 or h, Q+K-1, D] as `Vectors` with the `first` and `last` of this object."""
        return Vectors(table, self.first, self.last)

    def fill(self, out: Tensor, terms: Terms, scale: float) -> None:
        """Write the sum of `terms` for all pairs into `out` [G, Q, K]; `scale` multiplies q'_i·k'_j."""
        if terms.k is not None:
            fill_across(out, terms.k, self.vectors(terms.for_keys))
        if terms.q is not None:
            fill(out, terms.q, self.vectors(terms.for_queries), Tensor.copy_ if terms.k is None else Tensor.add_)
        if terms.content_q is not None:
            out.baddbmm_(terms.content_q, terms.content_k.mT, alpha=scale)

    def fill_backward(self, grad: Tensor, terms: Terms, totals: Terms) -> None:
        """Write the gradients of q and k into `totals`, and add the gradients of both tables to the tables of `totals`.

        Args:
            grad: Gradient of the sums that `fill` wrote, [G, Q, K].
            terms: The tensors that `fill` received.
            totals: Tensors for the gradients. The method overwrites `totals.q` and `totals.k`, and adds to the tables
                of `totals`.
        """
        if terms.q is not None:
            for_q, for_table = gradients(grad, terms.q, self.vectors(terms.for_queries))
            totals.q.copy_(for_q)
            totals.for_queries.add_(for_table)
        if terms.k is not None:
            for_k, for_table = gradients(grad.mT, terms.k, self.vectors(terms.for_keys).flipped())
            totals.k.copy_(for_k)
            totals.for_keys.add_(for_table.flip(-2))

    def gate(self, content: Tensor, q: Tensor, k: Tensor, table: Tensor, offset: float) -> tuple[Tensor, ...]:
        """Multiply the query-key products `content` [G, Q, K] by both gates in place, and return the gate of the keys.

        The gate of the queries is not returned, because `gate_backward` can compute it again in less time than the gate
        of the keys.
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
        """Return the gradient of `content`, and put the other gradients of `gate` into `totals`; see `fill_backward`.

        Both gates use the table `terms.for_queries`. This method overwrites `content`, the query-key products
        [G, Q, K] before `gate`.
        """
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
    """Return the gate of the queries, o + q_i·a_ij, for all pairs, [G, Q, K]; o is `offset`."""
    gate = torch.empty_like(like)
    fill(gate, q, vectors)
    return _raised(gate, offset)


def _raised(gate: Tensor, offset: float) -> Tensor:
    """Add the offset to the gate in place, and return the gate."""
    return gate.add_(offset) if offset else gate
