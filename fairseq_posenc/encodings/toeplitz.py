"""Reading tables of relative distances without a [Q, K, D] tensor.

Everything here works on L = Q+K-1 distances, -(K-1) .. Q-1, in the order of `Positions.distances`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..positions import Positions


def shift(x: Tensor, key_length: int) -> Tensor:
    """[..., Q, L] by distance -> [..., Q, K] by key, a view: out[r, j] = x[r, j - r + Q - 1].

    Dropping the first Q-1 numbers of the flattened matrix and reading it with rows of L-1 moves each row
    one step further to the left than the row above it (the skew of Music Transformer, both directions).
    """
    queries, length = x.shape[-2:]
    if queries == 1:
        return x
    flat = x.flatten(-2).narrow(-1, queries - 1, queries * (length - 1))
    return flat.unflatten(-1, (queries, length - 1)).narrow(-1, 0, key_length)


def unshift(x: Tensor) -> Tensor:
    """[..., Q, K] by key -> [..., Q, L] by distance, zeros elsewhere: the adjoint of `shift`."""
    queries, keys = x.shape[-2:]
    if queries == 1:
        return x
    rows = F.pad(x, (0, queries - 2)).flatten(-2)
    return F.pad(rows, (queries - 1, 1)).unflatten(-1, (queries, queries + keys - 1))


def spread(vector: Tensor, positions: Positions) -> Tensor:
    """[..., L], one number a distance -> [..., Q, K]: out[r, j] = vector[j - r + Q - 1].

    The windows of `unfold` are the rows from the last to the first; a third of the cost of an index.
    """
    return vector.unfold(-1, positions.key_length, 1).flip(-2)


def rows_of(positions: Positions, clip: int) -> Tensor | slice:
    """The table row of each of the L distances, clip(j - i, -k, k) + k: a slice where nothing is clipped."""
    longest = max(positions.key_length, positions.query_length) - 1
    if longest <= clip:
        return slice(clip - positions.key_length + 1, clip + positions.query_length)
    return positions.distances.clamp(-clip, clip) + clip


def take(table: Tensor, rows: Tensor | slice, dim: int) -> Tensor:
    """The rows of a table along `dim`, which must be -1 or -2."""
    if isinstance(rows, slice):
        return table.narrow(dim, rows.start, rows.stop - rows.start)
    return table.index_select(dim, rows)


def query_product(q: Tensor, table: Tensor, positions: Positions, rows: Tensor | slice) -> Tensor:
    """q_i . a[j - i] for all pairs.

    Args:
        q: [B, h, Q, D]. table: [1 or h, R, D], one for all heads or one a head.
        rows: the row of each of the L distances.
    Returns:
        [B, h, Q, K].
    """
    return shift(_by_distance(q, table, rows, positions), positions.key_length)


def key_product(k: Tensor, table: Tensor, positions: Positions, rows: Tensor | slice) -> Tensor:
    """k_j . a[j - i] for all pairs.

    Seen from a key the distances to the queries run backwards, and queries and keys change places.

    Args:
        k: [B, h, K, D]. table: [1 or h, R, D], one for all heads or one a head.
        rows: the row of each of the L distances.
    Returns:
        [B, h, Q, K].
    """
    if positions.query_length == 1:  # a key needs one row of the table only
        return (k * take(table, rows, -2)).sum(-1)[:, :, None]
    if isinstance(rows, slice):
        table = take(table, rows, -2).flip(-2)
        rows = slice(0, table.shape[-2])
    else:
        rows = rows.flip(0)
    return shift(_by_distance(k, table, rows, positions), positions.query_length).transpose(-1, -2)


def value_product(weights: Tensor, table: Tensor, rows: Tensor | slice) -> Tensor:
    """sum_j weights[i, j] a[j - i]: [B, h, Q, K] and [1 or h, R, D] -> [B, h, Q, D]."""
    by_distance = unshift(weights)
    if isinstance(rows, slice):
        by_row, table = by_distance, take(table, rows, -2)
    else:
        shape = (*by_distance.shape[:-1], table.shape[-2])
        by_row = by_distance.new_zeros(shape).index_add(-1, rows, by_distance)
    return _product(by_row, table.transpose(-1, -2))


def _by_distance(x: Tensor, table: Tensor, rows: Tensor | slice, positions: Positions) -> Tensor:
    """[B, h, T, D] times the row of each distance -> [B, h, T, L]."""
    if table.shape[-2] < positions.query_length + positions.key_length - 1:
        return take(_product(x, table), rows, -1)  # a clipped table: fewer products, then copies of the columns
    return _product(x, take(table, rows, -2))


def _product(x: Tensor, table: Tensor) -> Tensor:
    """x [B, h, Q, D] times table [1 or h, R, D] transposed -> [B, h, Q, R], last two axes contiguous."""
    if table.shape[0] == 1:
        return torch.matmul(x, table[0].t())
    batch, heads, queries, dim = x.shape
    by_head = x.transpose(0, 1).reshape(heads, batch * queries, dim)  # (B, h, Q, D) -> (h, B*Q, D)
    product = torch.bmm(by_head, table.transpose(-1, -2))
    return product.view(heads, batch, queries, -1).transpose(0, 1)
