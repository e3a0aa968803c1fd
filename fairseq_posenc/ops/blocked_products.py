"""BlockedProducts with the vectors of all relative distances, a block of rows at a time, forward and backward.

A row r and a column c are c - r apart. A block of rows needs only the distances that occur in it, its window: half
of the products of all rows with all distances, and the temporaries stay small. What is saved for the backward is
what was given. Legend: G = B h matrices, R rows, C columns, D head width, L = R + C - 1 distances: the vector of
(r, c) is entry c - r + R - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from . import cpp
from .precision import promoted

#: rows of a block by the number of rows: small windows cost fewer products, and more calls
SMALL_BLOCK, LARGE_BLOCK, FEW_ROWS = 32, 64, 256
#: rows of a copy from which copies cost less than a choice
LEAST_COPIED = 16
#: numbers in one temporary: a few fit the cache of a CPU; a GPU has memory, and pays for each launch
CHUNK = 1 << 23
CHUNK_ON_GPU = 1 << 26
#: numbers of each of a few matrices that are multiplied again and again
CACHED = 1 << 18


@dataclass(frozen=True)
class Vectors:
    """The vectors of all distances.

    Args:
        table: [1 or h, L, D].
        first, last: entries up to `first` hold the same vector, and so do those from `last` on.
    """

    table: Tensor
    first: int
    last: int

    def flipped(self) -> Vectors:
        """Seen from the columns: the distances run backwards."""
        end = self.table.shape[-2] - 1
        return Vectors(self.table.flip(-2), end - self.last, end - self.first)

    def with_table(self, table: Tensor) -> Vectors:
        """The same entries of another table."""
        return replace(self, table=table)


@dataclass(frozen=True)
class _Block:
    """Rows start .. stop-1. Columns before `left` and from `right` on share a vector each."""

    start: int
    stop: int
    left: int
    right: int
    rows: int

    @property
    def width(self) -> int:
        """Distances in the window."""
        return self.right - self.left + self.stop - self.start - 1

    @property
    def window(self) -> slice:
        """The entries of the columns left .. right-1."""
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
    """[1 or h, samples, rows, columns + rows - 1] by distance -> [samples, 1 or h, rows, columns] by column, a view."""
    tables, samples, rows, width = window.shape
    strides = (rows * width, samples * rows * width, max(width - 1, 1), 1)
    return window.as_strided((samples, tables, rows, columns), strides, rows - 1)


def _by_sample(x: Tensor, tables: int) -> Tensor:
    """[G, ...] -> [samples, 1 or h, ...], a view."""
    return x.unflatten(0, (-1, tables))


def _behind(x: Tensor, tables: int) -> Tensor:
    """[G, rows, D] -> [1 or h, samples * rows, D]: those that share a table behind each other, for one product."""
    return _by_sample(x, tables).transpose(0, 1).flatten(1, 2)


def _window(x: Tensor, table: Tensor) -> Tensor:
    """The products of x [G, rows, D] with entries [1 or h, W, D]: [1 or h, samples, rows, W]."""
    return torch.bmm(_behind(x, len(table)), table.mT).unflatten(1, (-1, x.shape[1]))


def of_groups(table: Tensor, groups: int) -> Tensor:
    """[1 or h, ...] -> [G, ...]; a table a head is repeated for every sample."""
    if len(table) == 1:
        return table.expand(groups, -1, -1)
    return table.repeat(groups // len(table), 1, 1)


def fill(out: Tensor, x: Tensor, vectors: Vectors, put: Callable[[Tensor, Tensor], object] = Tensor.copy_) -> None:
    """out[g, r, c] = x[g, r] . vector of (r, c); out [G, R, C], x [G, R, D]; or, with Tensor.add_, that much more."""
    columns, table = out.shape[-1], vectors.table
    ends = _ends(x, vectors)
    for block in _blocks(x.shape[1], columns, vectors):
        part, some = out[:, block.start : block.stop], x[:, block.start : block.stop]
        if block.left:
            put(part[..., : block.left], ends[vectors.first][:, block.start : block.stop])
        if block.right < columns:
            put(part[..., block.right :], ends[vectors.last][:, block.start : block.stop])
        if block.right > block.left:
            window = _window(some, table[:, block.window])
            near = part[..., block.left : block.right]
            put(_by_sample(near, len(table)), _by_column(window, near.shape[-1]))


def fill_across(out: Tensor, x: Tensor, vectors: Vectors) -> None:
    """out[g, r, c] = x[g, c] . vector of (r, c): of the columns, x [G, C, D].

    What is far is written first, all in one go, and what is near then by columns.
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
    """Whether C++ may transpose these: four times as fast as a strided copy."""
    single = pairs.device.type == "cpu" and pairs.dtype == torch.float32 and pairs.is_contiguous()
    return single and not torch.compiler.is_compiling() and cpp.works("clipped_products")


def _fill_far(out: Tensor, left: Tensor, right: Tensor, vectors: Vectors) -> None:
    """out [G, R, C] from [G, 1, C] of what is far to the left of a row and to its right; anything where it is near.

    Copies of some rows at a time, which change sides where all of these rows are near, take a third of the time of a
    choice a number.
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
    """x times the vectors that stand for more than one distance, by their entries: [G, R, 1] each."""
    found = (entry for entry in (vectors.first, vectors.last) if 0 <= entry < vectors.table.shape[-2])
    return {entry: torch.bmm(x, of_groups(vectors.table[:, entry, :, None], len(x))) for entry in found}


def gradients(grad: Tensor, x: Tensor, vectors: Vectors) -> tuple[Tensor, Tensor]:
    """Of x [G, R, D] and, in at least float32, the table [1 or h, L, D], given that of `fill`'s output, [G, R, C]."""
    table, tables, across = vectors.table, len(vectors.table), grad.stride(-1) != 1 and _natively(grad.mT)
    for_x, for_table = torch.zeros_like(x), torch.zeros_like(promoted(table))
    window: Tensor | None = None
    for block in _blocks(x.shape[1], grad.shape[-1], vectors):
        given, some = grad[:, block.start : block.stop], x[:, block.start : block.stop]
        mine = for_x[:, block.start : block.stop]
        flat = [(vectors.first, given[..., : block.left]), (vectors.last, given[..., block.right :])]
        for entry, part in flat:
            if part.shape[-1]:
                total = part.sum(-1, keepdim=True)
                mine += total * of_groups(table[:, entry : entry + 1], len(x))
                collect(for_table, slice(entry, entry + 1), total, some)
        if block.right > block.left:
            near = _by_sample(given[..., block.left : block.right], tables)
            shape = (tables, len(near), near.shape[2], block.width)
            if window is None or window.shape != shape:
                window = grad.new_zeros(shape)  # its corners stay zero from block to block
            if across:
                cpp.across_backward(grad.mT, window, block.start, block.left)
            else:
                _by_column(window, near.shape[-1]).copy_(near)
            by_entry = window.flatten(1, 2)
            products = torch.bmm(by_entry, table[:, block.window])  # baddbmm_ into a part is a product a matrix
            _by_sample(mine, tables).add_(products.unflatten(1, shape[1:3]).transpose(0, 1))
            for_table[:, block.window] += torch.bmm(by_entry.mT, _behind(some, tables))
    return for_x, for_table


def collect(for_table: Tensor, entries: slice, by_entry: Tensor, x: Tensor) -> None:
    """for_table[entries] += by_entry^T x, summed over the matrices that share it: [G, rows, W], [G, rows, D]."""
    tables = len(for_table)
    if tables == 1:
        product = torch.mm(by_entry.reshape(-1, by_entry.shape[-1]).t(), x.reshape(-1, x.shape[-1]))[None]
    else:
        product = torch.bmm(by_entry.transpose(-1, -2), x).unflatten(0, (-1, tables)).sum(0)
    for_table[:, entries] += product


def some_at_a_time(shape: Sequence[int], device: torch.device) -> Iterator[tuple[slice, slice]]:
    """Of [B, h, Q, K] some samples, or some heads of one, whose matrices a cache holds."""
    batch, heads, queries, keys = shape
    most = max(1, (CHUNK if device.type == "cpu" else CHUNK_ON_GPU) // (queries * keys))
    samples, some = max(1, most // heads), min(heads, most)
    for b in range(0, batch, samples):
        for h in range(0, heads, some):
            yield slice(b, b + samples), slice(h, h + some)


def in_cache(*pairs: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Of matrices [G, Q, K] a few at a time: what one product wrote, a CPU's next then reads from its cache."""
    groups, queries, keys = pairs[0].shape
    size = max(1, CACHED // max(1, queries * keys)) if pairs[0].device.type == "cpu" else groups
    return zip(*(x.split(size) for x in pairs), strict=True)


def of_chunk(table: Tensor, at: tuple[slice, slice]) -> Tensor:
    """The tables of its heads, a view."""
    return table if len(table) == 1 else table[at[1]]


class BlockedProducts(torch.autograd.Function):
    """q_i . (vector of j - i) + k_j . (another vector of j - i) + scale * q'_i . k'_j, [B, h, Q, K].

    Any of the three may be left out. Differentiable once.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor | None,
        k: Tensor | None,
        for_queries: Tensor | None,
        for_keys: Tensor | None,
        content_q: Tensor | None,
        content_k: Tensor | None,
        scale: float,
        shape: tuple[int, int, int, int],
        flat: tuple[int, int],
    ) -> Tensor:
        """Tables [1 or h, Q+K-1, D] in the order of the distances; `flat`: see `Vectors`."""
        ctx.save_for_backward(q, k, for_queries, for_keys, content_q, content_k)
        ctx.scale, ctx.flat = scale, flat
        given = q if q is not None else k
        assert given is not None
        out = given.new_empty(shape)
        with torch.autocast(given.device.type, enabled=False):
            for at in some_at_a_time(shape, given.device):
                part = out[at].flatten(0, 1)  # a view
                if k is not None and for_keys is not None:
                    fill_across(part, k[at].flatten(0, 1), Vectors(of_chunk(for_keys, at), *flat))
                if q is not None and for_queries is not None:
                    put = Tensor.copy_ if k is None else Tensor.add_
                    fill(part, q[at].flatten(0, 1), Vectors(of_chunk(for_queries, at), *flat), put)
                if content_q is not None and content_k is not None:
                    part.baddbmm_(content_q[at].flatten(0, 1), content_k[at].flatten(0, 1).mT, alpha=scale)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        given = ctx.saved_tensors
        q, k, for_queries, for_keys, content_q, content_k = given
        made: list[Any] = [None if x is None else zeros_like(x) for x in given]
        with torch.autocast(grad.device.type, enabled=False):
            for at in some_at_a_time(grad.shape, grad.device):
                by_pair = grad[at].flatten(0, 1)
                if q is not None:
                    _backward(by_pair, q, for_queries, ctx.flat, at, (made[0], made[2]))
                if k is not None:
                    _backward(by_pair, k, for_keys, ctx.flat, at, (made[1], made[3]), of_keys=True)
                if content_q is not None:
                    times(by_pair, content_k[at], ctx.scale, made[4][at])
                    times(by_pair.mT, content_q[at], ctx.scale, made[5][at])
        found = (None if x is None else x.to(like.dtype) for x, like in zip(made, given, strict=True))
        return *found, None, None, None


def times(pairs: Tensor, x: Tensor, scale: float, out: Tensor) -> None:
    """out [B, h, R, D] = scale * pairs [G, R, C] times x [B, h, C, D]."""
    out.copy_(torch.bmm(pairs, x.flatten(0, 1)).mul_(scale).view(out.shape))


def zeros_like(x: Tensor) -> Tensor:
    """Contiguous, in at least float32: chunks add to it."""
    return torch.zeros(x.shape, dtype=promoted(x.new_empty(0)).dtype, device=x.device)


def _backward(
    grad: Tensor,
    x: Tensor,
    table: Tensor,
    flat: tuple[int, int],
    at: tuple[slice, slice],
    made: tuple[Tensor | None, Tensor | None],
    of_keys: bool = False,
) -> None:
    """Add the gradients of a chunk of x and of its table, given that of its pairs [G, Q, K]."""
    vectors = Vectors(of_chunk(table, at), *flat)
    if of_keys:
        grad, vectors = grad.mT, vectors.flipped()
    for_x, for_table = gradients(grad, x[at].flatten(0, 1), vectors)
    assert made[0] is not None
    assert made[1] is not None
    made[0][at] += for_x.view(made[0][at].shape)
    of_chunk(made[1], at).add_(for_table.flip(-2) if of_keys else for_table)
