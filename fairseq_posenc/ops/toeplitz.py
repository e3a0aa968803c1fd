"""Multiply queries, keys or attention weights by vectors of relative distances, without a [Q, K, D] tensor.

All functions use the L = Q+K-1 distances j - i from -(K-1) to Q-1, in the order of `Positions.distances`. The functions
named `*_product` read the vector of each distance from a table of R rows. They compute the products of all tokens with
all vectors by one matrix product, and then reorder them from distances to keys (`shift`).

The row and the column of a pair determine its distance, unless the caller chooses the positions of the tokens
(`Lengths.pairs`). With chosen positions, the products or the vectors are read pair by pair, which is slower.

Legend: B batch, h heads, Q queries (index i), K keys (index j), D head width.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from . import single_query
from .compiled import eagerly, exporting
from .content import Content
from .precision import promoted

#: Rows of a block of `_skewed`. Small blocks need fewer products, because a block is multiplied only by the vectors of
#: the distances that occur in it, but more calls.
BLOCK = 64
#: Numbers in the largest temporary tensor if something is computed for a few queries at a time. On a CPU it fits into
#: the cache. On a GPU it is larger, because memory is plentiful and every kernel launch costs time.
CHUNK, CHUNK_ON_GPU = 1 << 18, 1 << 24
#: See `_has_far_more_rows_than_keys`.
FEW = 16


class Lengths(Protocol):
    """Declare the part of `Positions` that this file needs."""

    @property
    def query_length(self) -> int:
        """Return the number of queries, Q."""

    @property
    def key_length(self) -> int:
        """Return the number of keys, K."""

    @property
    def pairs(self) -> Tensor | None:
        """Return the index of each pair's distance, [1 or B, Q, K]; None if row and column determine the distance."""


def shift(x: Tensor, key_length: int) -> Tensor:
    """Reorder a tensor [..., Q, L] by distance to a tensor [..., Q, K] by key: out[r, j] = x[r, j - r + Q - 1].

    The function drops the first Q-1 numbers of the flattened matrix and reads the others in rows of L-1 numbers. Each
    of the new rows begins one distance earlier in `x` than the row above it. The function generalises the skewing of
    Music Transformer (Huang et al., 2018) to distances in both directions. With `_with_gap`, L is one larger, and the
    additional numbers are not read.
    """
    queries, length = x.shape[-2:]
    if queries == 1:
        return x.narrow(-1, 0, key_length)
    flat = x.flatten(-2).narrow(-1, queries - 1, queries * (length - 1))
    return flat.unflatten(-1, (queries, length - 1)).narrow(-1, 0, key_length)


def unshift(x: Tensor) -> Tensor:
    """Reorder a tensor [..., Q, K] by key to a tensor [..., Q, L] by distance, and fill the gaps with zeros.

    This function is the adjoint of the linear function `shift`.
    """
    queries, keys = x.shape[-2:]
    if queries == 1:
        return x
    rows = F.pad(x, (0, queries - 2)).flatten(-2)
    return F.pad(rows, (queries - 1, 1)).unflatten(-1, (queries, queries + keys - 1))


def to_pairs(vector: Tensor, positions: Lengths) -> Tensor:
    """Copy one number per distance, [..., L], to all pairs, [1 or B, ..., Q, K]: out[r, j] = vector[j - r + Q - 1].

    The slices that `unfold` returns are the rows in reverse order. Slicing takes a third of the time of indexing.
    Compiled code uses `shift`, because `unfold` would be compiled again for every length.
    """
    if positions.pairs is not None:
        pairs = vector.index_select(-1, positions.pairs.flatten()).unflatten(-1, positions.pairs.shape)
        return pairs.movedim(-3, 0)
    if torch.compiler.is_compiling():
        rows = _with_gap(vector, -1)[..., None, :].expand(*vector.shape[:-1], positions.query_length, -1)
        return shift(rows, positions.key_length)[None]
    return vector.unfold(-1, positions.key_length, 1).flip(-2)[None]


def take(table: Tensor, rows: Tensor | slice, dim: int) -> Tensor:
    """Return the rows of a table along `dim`, which must be -1 or -2."""
    if isinstance(rows, slice):
        return table.narrow(dim, rows.start, rows.stop - rows.start)
    return table.index_select(dim, rows)


def query_product(q: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice) -> Tensor:
    """Return q_i·a[j - i] for all queries i and keys j, [B, h, Q, K].

    Args:
        q: Queries, [B, h, Q, D].
        table: Vectors a, [1 or h, R, D]; either all heads share one table, or there is one table per head.
        positions: The numbers of queries and keys.
        rows: Row of the table for each of the L distances.
    """
    if _has_far_more_rows_than_keys(table, positions, rows):
        return _of_pairs(q, by_distance(table, rows), positions, "q")
    if _reads_pair_by_pair(table, positions, rows):
        table, index = _fewest(table, positions, rows)
        products = promoted(with_rows(q, table.to(q.dtype)))
        return products.gather(-1, _for_heads(index, q))
    return _skewed(q, by_distance(table, rows).to(q.dtype), positions.key_length)


def key_product(
    k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, content: Content | None = None
) -> Tensor:
    """Return k_j·a[j - i] for all queries i and keys j, [B, h, Q, K].

    Args:
        k: Keys, [B, h, K, D].
        table, positions, rows: See `query_product`.
        content: Content product q·k; it is added to the result if one pass over the keys can compute both.
    """
    if is_single(positions):
        vectors = by_distance(table, rows)
        if content is not None and content.k is k and single_query.in_one_loop(k) and content.take():
            return single_query.of_keys_and_query(k, vectors, content.q * content.scale)
        return single_query.of_keys(k, vectors)
    if _has_far_more_rows_than_keys(table, positions, rows):
        return _of_pairs(k, by_distance(table, rows), positions, "k")
    if _reads_pair_by_pair(table, positions, rows):
        table, index = _fewest(table, positions, rows)
        products = promoted(torch.matmul(table.to(k.dtype), k.transpose(-1, -2)))  # [B, h, R, K]
        return products.gather(-2, _for_heads(index, k))
    vectors = by_distance(table, rows).flip(-2).to(k.dtype)
    return _skewed(k, vectors, positions.query_length).transpose(-1, -2)


def value_product(weights: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice) -> Tensor:
    """Return sum_j weights[i, j] a[j - i] for all queries i: [B, h, Q, K] and [1 or h, R, D] -> [B, h, Q, D]."""
    if positions.pairs is None:
        return with_rows(unshift(weights), by_distance(table, rows).to(weights.dtype).transpose(-1, -2))
    table, index = _fewest(table, positions, rows)
    by_row = weights.new_zeros(*weights.shape[:-1], table.shape[-2], dtype=promoted(weights).dtype)
    by_row = by_row.scatter_add(-1, _for_heads(index, weights), promoted(weights)).to(weights.dtype)
    return with_rows(by_row, table.to(weights.dtype).transpose(-1, -2))


def is_single(positions: Lengths) -> bool:
    """Return whether there is a single query, as in a decoding step, so that each key has one vector."""
    return positions.query_length == 1 and positions.pairs is None


def by_distance(table: Tensor, rows: Tensor | slice) -> Tensor:
    """Return the vector of each distance, [1 or h, L, D], in at least float32.

    Convert the vectors afterwards: the gradient of a row is then summed over its distances in float32.
    """
    return take(promoted(table), rows, -2)


def _reads_pair_by_pair(table: Tensor, positions: Lengths, rows: Tensor | slice) -> bool:
    """Return whether to multiply all tokens by the R rows of the table, and then to read the product of each pair.

    On a CPU, this is faster if many distances share a row. On a GPU, the gradient would be slow, because it adds the
    numbers of all pairs that read the same product one by one.
    """
    if positions.pairs is not None:
        return True
    if torch.compiler.is_compiling() or table.device.type != "cpu" or isinstance(rows, slice):
        return False
    return 2 * table.shape[-2] <= len(rows)


def _has_far_more_rows_than_keys(table: Tensor, positions: Lengths, rows: Tensor | slice) -> bool:
    """Return whether most of the products with all vectors would belong to no pair.

    Products with all vectors are computed by one fast matrix product, so they are chosen up to FEW times as many as
    there are keys. If all samples have the same positions, reading a vector for each pair is never slower.
    """
    if positions.pairs is None or torch.compiler.is_compiling():
        return False
    fewest = min(table.shape[-2], _length(rows))
    return fewest > (FEW if len(positions.pairs) > 1 else 1) * positions.key_length


def _length(rows: Tensor | slice) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def _of_pairs(x: Tensor, vectors: Tensor, positions: Lengths, axis: str) -> Tensor:
    """Return the products of tokens with the vectors of their pairs, in at least float32: [B, h, Q, K].

    The products are computed for a few queries at a time, and again in the backward pass, so that no tensor holds a
    vector for each pair.

    Args:
        x: Queries [B, h, Q, D] or keys [B, h, K, D].
        vectors: The vector of each distance, [1 or h, L, D].
        positions: The pairs of queries and keys.
        axis: `q` for queries and `k` for keys.
    """
    assert positions.pairs is not None
    vectors, pairs = vectors.to(x.dtype), positions.pairs
    size = rows_of_chunk(len(pairs) * len(vectors) * positions.key_length * x.shape[-1], x.device)
    parts = []
    for start in range(0, positions.query_length, size):
        own = x[:, :, start : start + size] if axis == "q" else x
        inputs = (own, vectors, pairs[:, start : start + size], axis)
        parts.append(checkpoint(_of_some_pairs, *inputs, use_reentrant=False) if eagerly() else _of_some_pairs(*inputs))
    return promoted(torch.cat(parts, 2))


def _of_some_pairs(x: Tensor, vectors: Tensor, pairs: Tensor, axis: str) -> Tensor:
    read = vectors[:, pairs]  # [1 or h, 1 or B, Q, K, D]
    heads, samples = ("h" if read.shape[0] > 1 else ""), ("b" if read.shape[1] > 1 else "")
    read = read if samples else read[:, 0]
    return torch.einsum(f"bh{axis}d,{heads}{samples}qkd->bhqk", x, read if heads else read[0])


def rows_of_chunk(numbers: int, device: torch.device) -> int:
    """Return how many rows to compute at a time if each needs a temporary tensor of `numbers` numbers."""
    return max(1, (CHUNK if device.type == "cpu" else CHUNK_ON_GPU) // max(1, numbers))


def _fewest(table: Tensor, positions: Lengths, rows: Tensor | slice) -> tuple[Tensor, Tensor]:
    """Return the table or, if it has more rows than there are distances, their vectors; and the row of each pair."""
    if positions.pairs is None or table.shape[-2] <= _length(rows):
        return table, rows_of_pairs(positions, rows)
    return by_distance(table, rows), positions.pairs


def rows_of_pairs(positions: Lengths, rows: Tensor | slice) -> Tensor:
    """Return the row of the table for each pair, [1 or B, Q, K] int64."""
    if positions.pairs is None:
        assert isinstance(rows, Tensor)
        return to_pairs(rows, positions)
    return positions.pairs + rows.start if isinstance(rows, slice) else rows[positions.pairs]


def _for_heads(index: Tensor, like: Tensor) -> Tensor:
    """Repeat [1 or B, Q, K] for each head of each sample, [B, h, Q, K]; `like` has the same two first axes."""
    return index[:, None].expand(*like.shape[:2], -1, -1)


def _skewed(x: Tensor, vectors: Tensor, columns: int) -> Tensor:
    """Return the products of all tokens with the vectors of their distances, in the order of the columns.

    Args:
        x: The tokens of R rows, [B, h, R, D].
        vectors: The vectors of the distances from -(R - 1) to C - 1 from a row to a column, [1 or h, R + C - 1, D].
        columns: Number of columns, C.

    Returns:
        x[r]·vectors[c - r + R - 1], [B, h, R, C].
    """
    rows = x.shape[-2]
    if torch.compiler.is_compiling():
        return shift(with_rows(x, _with_gap(vectors, -2)), columns)
    if rows <= BLOCK:
        return shift(with_rows(x, vectors), columns)
    blocks = []
    for start in range(0, rows, BLOCK):
        stop = min(start + BLOCK, rows)
        window = vectors[:, rows - stop : rows - start + columns - 1]
        blocks.append(shift(with_rows(x[:, :, start:stop], window), columns))
    return torch.cat(blocks, -2)


def _with_gap(vectors: Tensor, dim: int) -> Tensor:
    """Append zeros along `dim` (-1 or -2) under torch.export.

    Without them, `shift` leaves no numbers out between its rows if K = 2, and the graph would refuse this length.
    """
    return F.pad(vectors, (0, 0) * (-1 - dim) + (0, 1)) if exporting() else vectors


def with_rows(x: Tensor, table: Tensor) -> Tensor:
    """Return the products of all vectors x [B, h, Q, D] with all rows of a table [1 or h, R, D].

    Returns:
        The products, [B, h, Q, R]; the last two axes are contiguous.
    """
    if table.shape[0] == 1:
        return torch.matmul(x, table[0].t())
    batch, heads, queries, dim = x.shape
    by_head = x.transpose(0, 1).reshape(heads, batch * queries, dim)  # (B, h, Q, D) -> (h, B*Q, D)
    product = torch.bmm(by_head, table.transpose(-1, -2))
    return product.view(heads, batch, queries, table.shape[1]).transpose(0, 1)
