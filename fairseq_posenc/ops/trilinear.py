"""Compute M3's product of three vectors, sum_d q_id k_jd a_ijd, without a tensor of [Q, K, D] numbers per head.

The sum is not a matrix product. The product and its gradients stand below as plain formulas, which torch.compile turns
into loops without temporary tensors: with the rest of the attention if that is compiled (`_InGraph`), and otherwise on
a CPU one by one. Without a compiler, the formulas are computed for a few queries at a time.

Legend: B batch, h heads, Q queries, K keys, D head width, L = Q+K-1 distances. The argument `vectors`, [1 or h, L, D],
holds the vectors a of all distances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from .compiled import compiled, own_gradients, usable
from .precision import promoted
from .shifting import unshift
from .toeplitz import in_chunks, rows_of_chunk

#: Minimum number of products at which compiled loops save more time than their calls take.
LEAST = 1 << 17
#: Queries whose gradients a compiled loop computes at a time. Larger blocks contain more distances that no pair has.
BLOCK = 64

Block = tuple[slice, slice]


def product(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    """Return sum_d q_id k_jd a_ijd in at least float32: [B, h, Q, D], [B, h, K, D] -> [B, h, Q, K]."""
    if own_gradients():
        out: Tensor = (_InGraph if torch.compiler.is_compiling() else _Trilinear).apply(q, k, vectors)
        return out
    rows, columns = (torch.arange(x.shape[2], device=q.device) for x in (q, k))
    return _of_pairs(q, k, vectors, (columns - rows[:, None] + q.shape[2] - 1)[None])


def product_of_pairs(q: Tensor, k: Tensor, vectors: Tensor, index: Tensor) -> Tensor:
    """Return the product with the vector of each pair, a_ij, which is row index[i, j] of `vectors`: [B, h, Q, K].

    Args:
        q, k: See `product`.
        vectors: Vectors, [1 or h, R, D].
        index: Row of each pair, [1 or B, Q, K].
    """
    if torch.compiler.is_compiling():
        return _of_pairs(q, k, vectors, index)

    def formula(rows: slice) -> Tensor:
        return _of_pairs(q[:, :, rows], k, vectors, index[:, rows])

    return in_chunks(formula, q.shape[2], _rows_of_chunk(q, k))


def _of_pairs(q: Tensor, k: Tensor, vectors: Tensor, index: Tensor) -> Tensor:
    a = promoted(vectors)[:, index].transpose(0, 1)  # [1 or B, 1 or h, Q, K, D]
    return (promoted(q)[:, :, :, None] * k[:, :, None] * a).sum(-1)


class _Trilinear(torch.autograd.Function):
    """Compute the product and its first derivatives, and save only the inputs for the backward pass."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, vectors)
        run, blocks = _way(q, k, q.shape[2])
        parts = [run(_products, q[:, :, rows], k, vectors[:, window]) for rows, window in blocks]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 2)

    @staticmethod
    @once_differentiable  # the loops are computed without gradients
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        q, k, vectors = ctx.saved_tensors
        run, blocks = _way(q, k, BLOCK)
        for_q, for_k, for_vectors = (torch.zeros_like(promoted(x)) for x in (q, k, vectors))
        for rows, window in blocks:
            of_rows, a = grad[:, :, rows], vectors[:, window]
            for_q[:, :, rows] = run(_for_queries, of_rows, k, a)
            for_k += run(_for_keys, of_rows, q[:, :, rows], a)
            around = F.pad(k, (0, 0, of_rows.shape[2] - 1, of_rows.shape[2] - 1))
            part = run(
                _for_vectors, unshift(of_rows, of_rows.shape[2] + of_rows.shape[3] - 1), q[:, :, rows], around
            ).sum(0)
            for_vectors[:, window] += part if len(vectors) > 1 else part.sum(0, keepdim=True)
        return for_q.to(q.dtype), for_k.to(k.dtype), for_vectors.to(vectors.dtype)


class _InGraph(torch.autograd.Function):
    """Compute the product and its first derivatives as a part of a larger graph.

    A GPU runs each formula as a loop without temporary tensors. The loops read the dtype of the model.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, vectors)
        return _products(q, k, vectors.to(q.dtype).contiguous())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        q, k, vectors = ctx.saved_tensors
        queries, keys = q.shape[2], k.shape[2]
        rounded, by_pair = _stored(vectors.to(q.dtype)), _stored(grad.to(q.dtype))
        for_q, for_k = _for_queries(by_pair, k, rounded), _for_keys(by_pair, q, rounded)
        around = _stored(F.pad(k, (0, 0, queries - 1, queries - 1)))
        for_vectors = _for_vectors(unshift(by_pair, queries + keys - 1), q, around).sum(0)
        for_vectors = for_vectors if len(vectors) > 1 else for_vectors.sum(0, keepdim=True)
        return for_q.to(q.dtype), for_k.to(k.dtype), for_vectors.to(vectors.dtype)


def _stored(x: Tensor) -> Tensor:
    """Make a graph store a tensor. The strided view keeps torch from computing the tensor where it is read."""
    x = x.contiguous()
    return x.as_strided(x.shape, x.stride())


def _way(q: Tensor, k: Tensor, size: int) -> tuple[Callable[..., Tensor], list[Block]]:
    """Return a function that runs a formula, and the blocks of rows for which it runs, of at most `size` rows."""
    if usable(q.numel() * k.shape[2], LEAST, q.device):
        return _in_a_loop, _blocks(q, k, size)
    return _as_it_is, _blocks(q, k, min(size, _rows_of_chunk(q, k)))


def _as_it_is(formula: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    return formula(*(x.contiguous() for x in tensors))


def _in_a_loop(formula: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Run a formula in a compiled loop. All tensors are contiguous and detached, so it is compiled only once."""
    return compiled(formula)(*(x.detach().contiguous() for x in tensors))


def _rows_of_chunk(q: Tensor, k: Tensor) -> int:
    batch, heads, _, dim = q.shape
    return rows_of_chunk(batch * heads * k.shape[2] * dim, q.device)


def _blocks(q: Tensor, k: Tensor, size: int) -> list[Block]:
    """Return the rows of each block of queries, and the distances that occur in the block, as slices."""
    queries, keys = q.shape[2], k.shape[2]
    if size >= queries:
        return [(slice(0, queries), slice(0, queries + keys - 1))]
    starts = range(0, queries, size)
    ends = [min(start + size, queries) for start in starts]
    return [
        (slice(start, stop), slice(queries - stop, queries - start + keys - 1))
        for start, stop in zip(starts, ends, strict=True)
    ]


# -- the formulas, for contiguous vectors. Strided views give each pair its vector, which takes less arithmetic than an
# index, and all loops read neighbouring features.


def _at_pairs(vectors: Tensor, queries: int, keys: int) -> Tensor:
    """Return the vector of each pair, [1 or h, L, D] -> [1 or h, Q, K, D]."""
    heads, length, dim = vectors.shape
    return vectors.as_strided((heads, queries, keys, dim), (length * dim, dim, dim, 1)).flip(1)


def _products(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    return (promoted(q)[:, :, :, None] * k[:, :, None] * _at_pairs(vectors, q.shape[2], k.shape[2])).sum(-1)


def _for_queries(grad: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    return (promoted(grad)[..., None] * k[:, :, None] * _at_pairs(vectors, *grad.shape[2:])).sum(3)


def _for_keys(grad: Tensor, q: Tensor, vectors: Tensor) -> Tensor:
    return (promoted(grad)[..., None] * q[:, :, :, None] * _at_pairs(vectors, *grad.shape[2:])).sum(2)


def _for_vectors(by_distance: Tensor, q: Tensor, around: Tensor) -> Tensor:
    """Return the gradient of the vectors for each sample and head, [B, h, L, D].

    Args:
        by_distance: Gradients of the products, ordered by distance, [B, h, Q, L].
        q: Queries, [B, h, Q, D].
        around: Keys with Q-1 rows of zeros before and after them. The key of distance e and row r is in row e + r.
    """
    (batch, heads, _, dim), length = q.shape, by_distance.shape[3]
    keys = around.as_strided((batch, heads, q.shape[2], length, dim), (*around.stride()[:2], dim, dim, 1))
    return (promoted(by_distance)[..., None] * q[:, :, :, None] * keys).sum(2)
