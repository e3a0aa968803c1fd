"""Multiply queries, keys or attention weights by vectors of relative distances, without a [Q, K, D] tensor.

All functions use the L = Q+K-1 distances j - i from -(K-1) to Q-1, in the order of `Positions.distances`. The functions
named `*_product` read the vector of each distance from a table of R rows. They compute the products of all tokens with
all vectors by one matrix product, and then reorder them from distances to keys (`shift`).

The row and the column of a pair determine its distance, unless the caller chooses the positions of the tokens
(`Lengths.pairs`). With chosen positions, the products or the vectors are read pair by pair, which is slower.

Legend: B batch, h heads, Q queries (index i), K keys (index j), D head width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from . import single_query, windows
from .compiled import own_gradients
from .content import Content
from .precision import cast, promoted
from .shifting import Lengths, padded, shift, shift_transposed, to_pairs, transposed, unshift

#: Rows of a block of `_skewed`. Small blocks need fewer products, because a block is multiplied only by the vectors of
#: the distances that occur in it, but more calls.
BLOCK = 64
#: Numbers in the largest temporary tensor if something is computed for a few queries at a time. On a CPU it fits into
#: the cache. On a GPU it is larger, because memory is plentiful and every kernel launch costs time.
CHUNK, CHUNK_ON_GPU = 1 << 18, 1 << 24
#: See `_has_far_more_rows_than_keys`.
FEW = 16


def take(table: Tensor, rows: Tensor | slice, dim: int) -> Tensor:
    """Return the rows of a table along `dim`, which must be -1 or -2."""
    if isinstance(rows, slice):
        return table.narrow(dim, rows.start, rows.stop - rows.start)
    return table.index_select(dim, rows)


def query_product(q: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice) -> Tensor:
    """Return q_i·a[j - i] for all queries i and keys j, [B, h, Q, K], in at least float32.

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
        products = promoted(with_rows(q, cast(table, q.dtype)))
        return products.gather(-1, _for_heads(index, q))
    return promoted(_skewed(q, cast(by_distance(table, rows), q.dtype), positions.key_length))


def key_product(
    k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, content: Content | None = None
) -> Tensor:
    """Return k_j·a[j - i] for all queries i and keys j, [B, h, Q, K], in at least float32.

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
    if windows.usable(k, vectors):
        return promoted(transposed(windows.product(k, vectors[0], positions.query_length)))
    if torch.compiler.is_compiling():
        products = with_rows(k, padded(vectors, -2))
        return promoted(shift_transposed(products, positions.query_length, heads_first=len(vectors) > 1))
    return promoted(_skewed(k, vectors, positions.query_length)).transpose(-1, -2)


def value_product(weights: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice) -> Tensor:
    """Return sum_j weights[i, j] a[j - i] for all queries i: [B, h, Q, K] and [1 or h, R, D] -> [B, h, Q, D]."""
    if positions.pairs is None:
        vectors = padded(by_distance(table, rows).to(weights.dtype), -2)
        return with_rows(unshift(weights, vectors.shape[-2]), vectors.transpose(-1, -2))
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
    pairs = positions.pairs
    assert pairs is not None
    heads, samples = ("h" if len(vectors) > 1 else ""), ("b" if len(pairs) > 1 else "")
    equation = f"bh{axis}d,{heads}{samples}qkd->bhqk"

    def formula(rows: slice) -> Tensor:
        read = vectors[:, pairs[:, rows]].to(
            x.dtype
        )  # [1 or h, 1 or B, Q, K, D]; gradients are summed before, in float32
        read = read if samples else read[:, 0]
        return torch.einsum(equation, x[:, :, rows] if axis == "q" else x, read if heads else read[0])

    numbers = len(pairs) * len(vectors) * positions.key_length * x.shape[-1]
    return promoted(in_chunks(formula, positions.query_length, rows_of_chunk(numbers, x.device)))


def in_chunks(formula: Callable[[slice], Tensor], queries: int, size: int) -> Tensor:
    """Return formula(slice(0, queries)), [B, h, Q, K], computed for `size` queries at a time.

    Each part is computed again in the backward pass, so that only one part is in memory at a time.
    """
    parts = [slice(start, min(start + size, queries)) for start in range(0, queries, size)]
    again = own_gradients() and not torch.compiler.is_compiling()
    run = partial(checkpoint, formula, use_reentrant=False) if again else formula
    return torch.cat([run(part) for part in parts], 2)


def rows_of_chunk(numbers: int, device: torch.device) -> int:
    """Return how many rows to compute at a time if each row needs a temporary tensor with `numbers` entries."""
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
    if windows.usable(x, vectors):
        return windows.product(x, vectors[0], columns)
    if torch.compiler.is_compiling():
        return shift(with_rows(x, padded(vectors, -2)), columns, heads_first=len(vectors) > 1)
    if rows <= BLOCK:
        return shift(with_rows(x, vectors), columns)
    blocks = []
    for start in range(0, rows, BLOCK):
        stop = min(start + BLOCK, rows)
        window = vectors[:, rows - stop : rows - start + columns - 1]
        blocks.append(shift(with_rows(x[:, :, start:stop], window), columns))
    return torch.cat(blocks, -2)


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
