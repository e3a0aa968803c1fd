"""Compute M3's product of three vectors, sum_d q_id k_jd a_ijd, without a tensor of [Q, K, D] numbers per head.

The sum is not a matrix product. torch.compile turns each formula below into one pass over the query-key pairs, without
large temporary tensors. If possible, the forward pass uses C++ (cpp.py) rather than torch.compile.

Legend: B batch, h heads, Q queries, K keys, D head width, L = Q+K-1 distances. The argument `vectors`, [1 or h, L, D],
holds the vectors a of all distances.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from . import cpp
from .blocked_products import FEW_ROWS, LARGE_BLOCK, SMALL_BLOCK
from .compiled import compiled

#: Minimum number of products at which compiled loops save more time than their calls take.
LEAST = 1 << 17


def _entries(queries: int, keys: int, device: torch.device) -> Tensor:
    """Return the index of each query-key pair's vector in the table of vectors, [Q, K]."""
    rows, columns = torch.arange(queries, device=device), torch.arange(keys, device=device)
    return columns[None, :] - rows[:, None] + queries - 1


def products(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    """Return sum_d q_id k_jd a_ijd: [B, h, Q, D], [B, h, K, D] -> [B, h, Q, K]."""
    a = vectors[:, _entries(q.shape[2], k.shape[2], q.device)]
    return (q[:, :, :, None] * k[:, :, None] * a).sum(-1)


def _forward(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    vectors = vectors.contiguous()
    if q.dtype == k.dtype == vectors.dtype == torch.float32 and cpp.works("trilinear"):
        return cpp.trilinear(q, k, vectors)
    return compiled(products)(q.contiguous(), k.contiguous(), vectors)


def _for_queries(grad: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    a = vectors[:, _entries(grad.shape[2], grad.shape[3], grad.device)]
    return (grad[..., None] * k[:, :, None] * a).sum(3)


def _for_keys(grad: Tensor, q: Tensor, vectors: Tensor) -> Tensor:
    a = vectors[:, _entries(grad.shape[2], grad.shape[3], grad.device)]
    return (grad[..., None] * q[:, :, :, None] * a).sum(2)


def _for_window(by_entry: Tensor, q: Tensor, around: Tensor) -> Tensor:
    """Return the gradient of the vectors of W distances, [B, h, W, D].

    Args:
        by_entry: Gradients of the products, ordered by distance, [B, h, rows, W].
        q: Queries of the rows, [B, h, rows, D].
        around: Keys with padding, [B, h, W + rows - 1, D]; distance e of row r belongs to key e + r.
    """
    rows, entries = by_entry.shape[2:]
    keys = torch.arange(entries, device=q.device)[:, None] + torch.arange(rows, device=q.device)[None, :]
    # `unfold` would be compiled again for every size.
    return (by_entry.transpose(-1, -2)[..., None] * q[:, :, None] * around[:, :, keys]).sum(3)


def _for_vectors(grad: Tensor, q: Tensor, k: Tensor, like: Tensor) -> Tensor:
    """Return the gradient of the vectors, computed in blocks of queries."""
    queries, keys = grad.shape[2:]
    size = min(queries, SMALL_BLOCK if queries <= FEW_ROWS else LARGE_BLOCK)
    for_vectors = torch.zeros_like(like)
    for start in range(0, queries, size):
        stop = min(start + size, queries)
        rows, width = stop - start, keys + stop - start - 1
        by_entry = grad.new_zeros(*grad.shape[:2], rows, width)
        strides = (*by_entry.stride()[:2], max(width - 1, 1), 1)
        by_entry.as_strided((*grad.shape[:2], rows, keys), strides, rows - 1).copy_(grad[:, :, start:stop])
        around = F.pad(k, (0, 0, rows - 1, rows - 1))
        part = compiled(_for_window)(by_entry, q[:, :, start:stop].contiguous(), around).sum(0)
        for_vectors[:, queries - stop : queries - stop + width] += part if len(like) > 1 else part.sum(0)
    return for_vectors


class TrilinearProduct(torch.autograd.Function):
    """Compute the function `products` and its first derivatives, and save only the inputs for the backward pass."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, vectors)
        return _forward(q, k, vectors)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        # Make the tensors contiguous and detached, so that the kernels are compiled once for all callers.
        q, k, vectors = (saved.detach().contiguous() for saved in ctx.saved_tensors)
        grad = grad.contiguous()
        for_q, for_k = compiled(_for_queries)(grad, k, vectors), compiled(_for_keys)(grad, q, vectors)
        return for_q, for_k, _for_vectors(grad, q, k, vectors)
