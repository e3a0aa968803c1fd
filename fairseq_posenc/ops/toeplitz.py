"""Reading tables of relative distances without a [Q, K, D] tensor.

Everything here works on L = Q+K-1 distances, -(K-1) .. Q-1, in the order of `Positions.distances`.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from . import clipped_products, single_query
from .blocked_products import SMALL_BLOCK, BlockedProducts
from .content import Content
from .gated_product import GatedProduct
from .precision import HALF, promoted


class Lengths(Protocol):
    """How many queries and keys there are; `Positions` knows."""

    @property
    def query_length(self) -> int:
        """Q."""

    @property
    def key_length(self) -> int:
        """K."""


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


def spread(vector: Tensor, positions: Lengths) -> Tensor:
    """[..., L], one number a distance -> [..., Q, K]: out[r, j] = vector[j - r + Q - 1].

    The windows of `unfold` are the rows from the last to the first; a third of the cost of an index.
    """
    return vector.unfold(-1, positions.key_length, 1).flip(-2)


def take(table: Tensor, rows: Tensor | slice, dim: int) -> Tensor:
    """The rows of a table along `dim`, which must be -1 or -2."""
    if isinstance(rows, slice):
        return table.narrow(dim, rows.start, rows.stop - rows.start)
    return table.index_select(dim, rows)


def query_product(
    q: Tensor,
    table: Tensor,
    positions: Lengths,
    rows: Tensor | slice,
    clip: int | None = None,
    content: Content | None = None,
) -> Tensor:
    """q_i . a[j - i] for all pairs.

    Args:
        q: [B, h, Q, D]. table: [1 or h, R, D], one for all heads or one a head.
        rows: the row of each of the L distances.
        clip: distances beyond it share a row on either side; fewer products then.
        content: taken, and added, where that saves a pass over the pairs.
    Returns:
        [B, h, Q, K].
    """
    if torch.compiler.is_compiling():
        return shift(_product(q, take(table, rows, -2).to(q.dtype)), positions.key_length)
    if positions.query_length == 1:
        vectors, shared = _of_last_query(table, rows, positions, clip)
        found = _product(q, vectors.to(q.dtype))
        return torch.cat([found[..., :1].expand(*found.shape[:-1], shared), found[..., 1:]], -1) if shared else found
    return _windowed(q, None, table, None, positions, rows, clip, content)


def key_product(k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, clip: int | None = None) -> Tensor:
    """k_j . a[j - i] for all pairs.

    Seen from a key the distances to the queries run backwards, and queries and keys change places.

    Args:
        k: [B, h, K, D]. table, rows, clip: as in `query_product`.
    Returns:
        [B, h, Q, K].
    """
    if positions.query_length == 1:  # a key needs one row of the table only
        if k.dtype in HALF:  # summed in float32
            return (k * promoted(take(table, rows, -2))).sum(-1).unsqueeze(2)
        vectors, shared = _of_last_query(table, rows, positions, clip)
        return single_query.of_keys(k, vectors.to(k.dtype), shared)
    if torch.compiler.is_compiling():
        by_distance = _product(k, take(table, rows, -2).flip(-2).to(k.dtype))
        return shift(by_distance, positions.query_length).transpose(-1, -2)
    return _windowed(None, k, None, table, positions, rows, clip)


def both_products(
    q: Tensor,
    k: Tensor,
    for_queries: Tensor,
    for_keys: Tensor,
    positions: Lengths,
    rows: Tensor | slice,
    clip: int | None = None,
    content: Content | None = None,
) -> Tensor:
    """q_i . a[j - i] + k_j . b[j - i] for all pairs, in one pass: see `query_product` and `key_product`."""
    if positions.query_length == 1 or torch.compiler.is_compiling():
        of_queries = query_product(q, for_queries, positions, rows, clip)
        return promoted(of_queries) + _of_keys(k, for_keys, positions, rows, clip, content)
    return _windowed(q, k, for_queries, for_keys, positions, rows, clip, content)


def _of_keys(
    k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, clip: int | None, content: Content | None
) -> Tensor:
    """`key_product`, with the content of one query where its keys are these."""
    fits = content is not None and content.k is k and positions.query_length == 1 and k.dtype not in HALF
    taken = content.take() if content is not None and fits else None
    if taken is None:
        return promoted(key_product(k, table, positions, rows, clip))
    vectors, shared = _of_last_query(table, rows, positions, clip)
    return single_query.of_keys_and_query(k, vectors.to(k.dtype), taken.q * taken.scale, shared)


def _of_last_query(table: Tensor, rows: Tensor | slice, positions: Lengths, clip: int | None) -> tuple[Tensor, int]:
    """The vectors of the keys of one query, the last column's, and how many of the first keys share the first."""
    first = _flat(positions, clip)[0]
    if isinstance(rows, slice) or first < 1:
        return take(table, rows, -2), 0
    return take(table, rows[first:], -2), first + 1


def gated_product(
    q: Tensor, k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, clip: int | None, offset: float
) -> Tensor:
    """(q_i . k_j) (o + q_i . a[j - i]) (o + k_j . a[j - i]) / sqrt(D) for all pairs, in at least float32."""
    if positions.query_length > 1 and q.dtype not in HALF and not torch.compiler.is_compiling():
        given = q.contiguous(), k.contiguous(), take(table, rows, -2).to(q.dtype)
        if clipped_products.serves(_far(positions, clip), positions.query_length, k, q, table):
            made: Tensor = clipped_products.ClippedGatedProduct.apply(*given, offset, _far(positions, clip))
        else:
            made = GatedProduct.apply(*given, offset, _flat(positions, clip), torch.is_grad_enabled())
        return made
    scaled, of_query = q * q.shape[-1] ** -0.5, promoted(query_product(q, table, positions, rows, clip))
    if positions.query_length == 1 and not torch.compiler.is_compiling():
        vectors, shared = _of_last_query(table, rows, positions, clip)
        content, of_key = map(promoted, single_query.of_query_and_of_keys(k, vectors.to(k.dtype), scaled, shared))
    else:
        content = promoted(torch.matmul(scaled, k.transpose(-1, -2)))
        of_key = promoted(key_product(k, table, positions, rows, clip))
    return content * (of_query + offset) * (of_key + offset) if offset else content * of_query * of_key


def trilinear_product(
    q: Tensor, k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, clip: int | None
) -> Tensor:
    """sum_d q_d k_jd a[j - i]_d of one query i, the last column's: [B, h, 1, K]."""
    vectors, shared = _of_last_query(table, rows, positions, clip)
    return single_query.of_all_three(k, vectors.to(k.dtype), q, shared)


def _flat(positions: Lengths, clip: int | None, more: int = 0) -> tuple[int, int]:
    """Return the ends of the distances up to `clip`, as entries: see `blocked_products.Vectors`.

    Where most pairs are nearer than that, the few others are not worth telling apart; `more`: even if a few less are.
    """
    keys = positions.key_length
    if clip is None or clip >= keys or 2 * clip >= keys + more:
        return -1, positions.query_length + keys
    return keys - 1 - clip, keys - 1 + clip


def _far(positions: Lengths, clip: int | None) -> tuple[int, int]:
    """Return the same for clipped_products.py, which has a product for each vector.

    A window has one for each of its rows more than the keys.
    """
    return _flat(positions, clip, SMALL_BLOCK)


def _windowed(
    q: Tensor | None,
    k: Tensor | None,
    for_queries: Tensor | None,
    for_keys: Tensor | None,
    positions: Lengths,
    rows: Tensor | slice,
    clip: int | None,
    content: Content | None = None,
) -> Tensor:
    """`blocked_products.BlockedProducts` with the table's row of every distance.

    In half precision the content is not taken: the sum is in float32.
    """
    x = q if q is not None else k
    assert x is not None
    queries, keys = positions.query_length, positions.key_length
    same = for_queries is for_keys
    # promoted first: distances that share a row add to its gradient in float32
    first = None if for_queries is None else take(promoted(for_queries), rows, -2).to(x.dtype)
    second = first if same else None if for_keys is None else take(promoted(for_keys), rows, -2).to(x.dtype)
    shape = (*x.shape[:2], queries, keys)
    taken = content.take() if content is not None and content.q.dtype == x.dtype not in HALF else None
    given = (None, None, 1.0) if taken is None else (taken.q, taken.k, taken.scale)
    if clipped_products.serves(_far(positions, clip), queries, k, q, first, second, *given[:2]):
        found: Tensor = clipped_products.ClippedProducts.apply(
            q, k, first, second, *given, shape, _far(positions, clip)
        )
    else:
        found = BlockedProducts.apply(q, k, first, second, *given, shape, _flat(positions, clip))
    return found


def value_product(weights: Tensor, table: Tensor, rows: Tensor | slice) -> Tensor:
    """sum_j weights[i, j] a[j - i]: [B, h, Q, K] and [1 or h, R, D] -> [B, h, Q, D]."""
    by_distance = unshift(weights)
    if isinstance(rows, slice):
        by_row, table = by_distance, take(table, rows, -2)
    else:
        shape = (*by_distance.shape[:-1], table.shape[-2])
        by_row = by_distance.new_zeros(shape).index_add(-1, rows, by_distance)
    return _product(by_row, table.transpose(-1, -2))


def _product(x: Tensor, table: Tensor) -> Tensor:
    """x [B, h, Q, D] times table [1 or h, R, D] transposed -> [B, h, Q, R], last two axes contiguous."""
    if table.shape[0] == 1:
        return torch.matmul(x, table[0].t())
    batch, heads, queries, dim = x.shape
    by_head = x.transpose(0, 1).reshape(heads, batch * queries, dim)  # (B, h, Q, D) -> (h, B*Q, D)
    product = torch.bmm(by_head, table.transpose(-1, -2))
    return product.view(heads, batch, queries, -1).transpose(0, 1)
