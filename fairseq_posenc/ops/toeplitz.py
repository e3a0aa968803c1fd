"""Multiply queries, keys or attention weights by vectors of relative distances, without a [Q, K, D] tensor.

All functions use the L = Q+K-1 distances j - i from -(K-1) to Q-1, in the order of `Positions.distances`. The functions
named `*_product` read the vector of each distance from a table of R rows.

The row and the column of a pair determine its distance, unless the caller chooses the positions of the tokens
(`Lengths.pairs`). With chosen positions, all functions read the vector of each pair (`of_pairs`), which is slower and
needs a tensor of Q x K x D numbers.

Legend: B batch, h heads, Q queries (index i), K keys (index j), D head width.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from . import compiled, single_query
from .blocked_products import SMALL_BLOCK, Blocked
from .clipped_products import Clipped
from .content import Content
from .pair_products import GatedProduct, Kernel, SumOfProducts
from .precision import HALF, promoted


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


def in_one_pass(positions: Lengths) -> bool:
    """Return whether the autograd functions of pair_products.py compute the products of all pairs.

    Under torch.compile, plain operations replace the autograd functions, because the compiler fuses plain operations.
    For a single query, single_query.py has faster functions. If `positions.pairs` is set, the autograd functions do not
    apply.
    """
    return positions.query_length > 1 and positions.pairs is None and not torch.compiler.is_compiling()


def one_by_one(positions: Lengths) -> bool:
    """Return whether single_query.py applies: there is one query, no `positions.pairs`, and no torch.compile."""
    return positions.query_length == 1 and positions.pairs is None and not torch.compiler.is_compiling()


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


def _with_gap(vectors: Tensor, dim: int) -> Tensor:
    """Append zeros along `dim` (-1 or -2) under torch.export.

    Without them, `shift` leaves no numbers out between its rows if K = 2, and the graph would refuse this length.
    """
    return F.pad(vectors, (0, 0) * (-1 - dim) + (0, 1)) if compiled.exporting() else vectors


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
        return _at(vector, positions.pairs, -1).movedim(-3, 0)
    if torch.compiler.is_compiling():
        rows = _with_gap(vector, -1)[..., None, :].expand(*vector.shape[:-1], positions.query_length, -1)
        return shift(rows, positions.key_length)[None]
    return vector.unfold(-1, positions.key_length, 1).flip(-2)[None]


def _at(table: Tensor, index: Tensor, dim: int) -> Tensor:
    """Select rows of a table along the axis `dim` (-1 or -2); the axes of `index` replace this axis.

    The gradient of `index_select` takes less time than the gradient of indexing with several axes.
    """
    axis = table.dim() + dim
    return table.index_select(axis, index.flatten()).unflatten(axis, index.shape)


def of_pairs(table: Tensor, rows: Tensor | slice, pairs: Tensor) -> Tensor:
    """Return the vector of each pair of a query and a key, [1 or h, R, D] -> [1 or B, 1 or h, Q, K, D].

    Args:
        table: Vectors; the result has their dtype.
        rows: Row of the table for each distance.
        pairs: Index of each pair's distance, [1 or B, Q, K].
    """
    return _at(take(table, rows, -2), pairs, -2).transpose(0, 1)


def take(table: Tensor, rows: Tensor | slice, dim: int) -> Tensor:
    """Return the rows of a table along `dim`, which must be -1 or -2."""
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
    """Return q_i·a[j - i] for all queries i and keys j, [B, h, Q, K].

    Args:
        q: Queries, [B, h, Q, D].
        table: Vectors a, [1 or h, R, D]; either all heads share one table, or there is one table per head.
        positions: The numbers of queries and keys.
        rows: Row of the table for each of the L distances.
        clip: Largest distance with its own row. All larger distances in the same direction use the row of distance
            `clip`. If `clip` is None, no distances share a row.
        content: Content product q·k; it is added to the result if one pass over the pairs can compute both.
    """
    if positions.pairs is not None:
        return torch.einsum("bhid,bhijd->bhij", q, of_pairs(promoted(table), rows, positions.pairs).to(q.dtype))
    if in_one_pass(positions):
        return _sum(q, None, table, None, positions, rows, clip, content)
    if torch.compiler.is_compiling():
        return shift(with_rows(q, _with_gap(take(table, rows, -2).to(q.dtype), -2)), positions.key_length)
    vectors, shared = _of_last_query(table, rows, positions, clip)
    products = with_rows(q, vectors.to(q.dtype))
    if not shared:
        return products
    return torch.cat([products[..., :1].expand(*products.shape[:-1], shared), products[..., 1:]], -1)


def key_product(k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, clip: int | None = None) -> Tensor:
    """Return k_j·a[j - i] for all queries i and keys j, [B, h, Q, K].

    Args:
        k: Keys, [B, h, K, D].
        table, positions, rows, clip: See `query_product`.
    """
    if positions.pairs is not None:
        return torch.einsum("bhjd,bhijd->bhij", k, of_pairs(promoted(table), rows, positions.pairs).to(k.dtype))
    if in_one_pass(positions):
        return _sum(None, k, None, table, positions, rows, clip)
    if positions.query_length > 1:
        by_distance = with_rows(k, _with_gap(take(table, rows, -2).flip(-2).to(k.dtype), -2))
        return shift(by_distance, positions.query_length).transpose(-1, -2)
    if k.dtype in HALF:  # sum in float32, which is cheap because each key needs only one row of the table
        return (k * promoted(take(table, rows, -2))).sum(-1).unsqueeze(2)
    vectors, shared = _of_last_query(table, rows, positions, clip)
    return single_query.of_keys(k, vectors.to(k.dtype), shared)


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
    """Return q_i·a[j - i] + k_j·b[j - i] for all queries i and keys j; see `query_product` and `key_product`.

    The vectors a are in the table `for_queries`, and the vectors b in the table `for_keys`.
    """
    if in_one_pass(positions):
        return _sum(q, k, for_queries, for_keys, positions, rows, clip, content)
    of_queries = query_product(q, for_queries, positions, rows, clip)
    return promoted(of_queries) + _of_keys(k, for_keys, positions, rows, clip, content)


def _of_keys(
    k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, clip: int | None, content: Content | None
) -> Tensor:
    """Return `key_product`, plus the content product q·k if one pass over the keys can compute both."""
    single = positions.query_length == 1 and positions.pairs is None
    fits = content is not None and content.k is k and single and k.dtype not in HALF
    taken = content.take() if content is not None and fits else None
    if taken is None:
        return promoted(key_product(k, table, positions, rows, clip))
    vectors, shared = _of_last_query(table, rows, positions, clip)
    return single_query.of_keys_and_query(k, vectors.to(k.dtype), taken.q * taken.scale, shared)


def _of_last_query(table: Tensor, rows: Tensor | slice, positions: Lengths, clip: int | None) -> tuple[Tensor, int]:
    """Return the vector of each key's distance to the last query, and the number of keys that share the first vector.

    The shared vector is returned only once. If every key has a vector of its own, the returned number is 0.
    """
    first = _flat(positions, clip)[0]
    if isinstance(rows, slice) or first < 1:
        return take(table, rows, -2), 0
    return take(table, rows[first:], -2), first + 1


def gated_product(
    q: Tensor, k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, clip: int | None, offset: float
) -> Tensor:
    """Return M4M's (q_i·k_j) (o + q_i·a[j - i]) (o + k_j·a[j - i]) / sqrt(D) for all pairs, in at least float32.

    The number o is `offset`; see `query_product` for the other arguments.
    """
    if in_one_pass(positions) and q.dtype not in HALF:
        kernel, vectors = _kernel(positions, clip, k, q, table), take(table, rows, -2).to(q.dtype)
        product: Tensor = GatedProduct.apply(
            kernel, offset, torch.is_grad_enabled(), q.contiguous(), k.contiguous(), vectors
        )
        return product
    scaled, of_query = q * q.shape[-1] ** -0.5, promoted(query_product(q, table, positions, rows, clip))
    if one_by_one(positions):
        vectors, shared = _of_last_query(table, rows, positions, clip)
        content, of_key = map(promoted, single_query.of_query_and_of_keys(k, vectors.to(k.dtype), scaled, shared))
    else:
        content = promoted(torch.matmul(scaled, k.transpose(-1, -2)))
        of_key = promoted(key_product(k, table, positions, rows, clip))
    return content * (of_query + offset) * (of_key + offset) if offset else content * of_query * of_key


def trilinear_product(
    q: Tensor, k: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice, clip: int | None
) -> Tensor:
    """Return M3's sum_d q_d k_jd a[j - i]_d for a single query, whose index i is that of the last key: [B, h, 1, K]."""
    vectors, shared = _of_last_query(table, rows, positions, clip)
    return single_query.of_all_three(k, vectors.to(k.dtype), q, shared)


def _flat(positions: Lengths, clip: int | None, more: int = 0) -> tuple[int, int]:
    """Return `first` and `last` of `blocked_products.Vectors` if distances beyond `clip` share a vector.

    If 2 clip >= K + `more`, most distances are at most `clip`, and sharing vectors would save nothing. In this case,
    the result says that no distances share a vector.
    """
    keys = positions.key_length
    if clip is None or clip >= keys or 2 * clip >= keys + more:
        return -1, positions.query_length + keys
    return keys - 1 - clip, keys - 1 + clip


def _kernel(positions: Lengths, clip: int | None, k: Tensor | None, *others: Tensor | None) -> Kernel:
    """Choose the kernel for the products of the given tensors; k is None if no keys are multiplied by vectors.

    `Clipped` is chosen even if its vectors outnumber the keys by up to SMALL_BLOCK, because `Blocked` also computes
    about SMALL_BLOCK superfluous products for each row.
    """
    clipped = Clipped(*_flat(positions, clip, SMALL_BLOCK))
    return clipped if clipped.serves(positions.query_length, k, *others) else Blocked(*_flat(positions, clip))


def _sum(
    q: Tensor | None,
    k: Tensor | None,
    for_queries: Tensor | None,
    for_keys: Tensor | None,
    positions: Lengths,
    rows: Tensor | slice,
    clip: int | None,
    content: Content | None = None,
) -> Tensor:
    """Return q_i·a[j - i] + k_j·b[j - i] for all pairs, or one of the two products if q or k is None.

    The sum includes the content product q·k, except in half precision: the attention then adds this product in float32.
    """
    x = k if q is None else q
    assert x is not None

    def by_distance(table: Tensor | None) -> Tensor | None:
        # Promote first, so that the gradient of a row is summed over its distances in float32.
        return None if table is None else take(promoted(table), rows, -2).to(x.dtype)

    first = by_distance(for_queries)
    second = first if for_keys is for_queries else by_distance(for_keys)
    taken = content.take() if content is not None and content.q.dtype == x.dtype not in HALF else None
    content_q, content_k, scale = (None, None, 1.0) if taken is None else (taken.q, taken.k, taken.scale)
    kernel = _kernel(positions, clip, k, q, first, second, content_q, content_k)
    total: Tensor = SumOfProducts.apply(kernel, scale, q, k, first, second, content_q, content_k)
    return total


def value_product(weights: Tensor, table: Tensor, positions: Lengths, rows: Tensor | slice) -> Tensor:
    """Return sum_j weights[i, j] a[j - i] for all queries i: [B, h, Q, K] and [1 or h, R, D] -> [B, h, Q, D]."""
    if positions.pairs is not None:
        vectors = of_pairs(promoted(table), rows, positions.pairs).to(weights.dtype)
        return torch.einsum("bhij,bhijd->bhid", weights, vectors)
    by_distance = unshift(weights)
    if isinstance(rows, slice):
        by_row, table = by_distance, take(table, rows, -2)
    else:
        shape = (*by_distance.shape[:-1], table.shape[-2])
        by_row = by_distance.new_zeros(shape).index_add(-1, rows, by_distance)
    return with_rows(by_row, table.transpose(-1, -2))


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
    return product.view(heads, batch, queries, -1).transpose(0, 1)
