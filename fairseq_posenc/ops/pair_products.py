"""Compute sums of position terms, and M4M's gated products, for all pairs of a query and a key, with their gradients.

The kernel `Blocked` works on every device. The kernel `Clipped` is faster if distances beyond a limit share a vector.
The autograd functions in this file call a kernel for a few samples or heads at a time. These functions save tensors for
the backward pass and add up gradients in at least float32. The functions also compute the gradients of the query-key
product q·k, which is called the content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .blocked_products import Blocked, Terms
from .clipped_products import Clipped

#: Maximum size of one temporary tensor, in numbers. The size is larger on a GPU, because each kernel launch takes time.
CHUNK = 1 << 23
CHUNK_ON_GPU = 1 << 26

Kernel = Blocked | Clipped
Chunk = tuple[slice, slice]


def chunks(pairs: Sequence[int], device: torch.device) -> Iterator[Chunk]:
    """Yield slices that divide a tensor [B, h, Q, K] into chunks of several samples, or of some heads of one sample."""
    batch, heads, queries, keys = pairs
    most = max(1, (CHUNK if device.type == "cpu" else CHUNK_ON_GPU) // (queries * keys))
    samples, heads_each = max(1, most // heads), min(heads, most)
    for b in range(0, batch, samples):
        for h in range(0, heads, heads_each):
            yield slice(b, b + samples), slice(h, h + heads_each)


def _of_chunk(terms: Terms, chunk: Chunk) -> Terms:
    """Return the part of `terms` that belongs to some samples and heads, as views if the tensors are contiguous."""

    def vectors(x: Tensor | None) -> Tensor | None:
        return None if x is None else x[chunk].flatten(0, 1)

    def table(x: Tensor | None) -> Tensor | None:
        return x if x is None or len(x) == 1 else x[chunk[1]]

    q, k, for_queries, for_keys, content_q, content_k = terms
    return Terms(vectors(q), vectors(k), table(for_queries), table(for_keys), vectors(content_q), vectors(content_k))


def _zeros_like(terms: Terms) -> Terms:
    """Return zeros for the gradients of `terms` in at least float32, contiguous so that their chunks are views."""

    def total(x: Tensor) -> Tensor:
        return torch.zeros(x.shape, dtype=torch.promote_types(x.dtype, torch.float32), device=x.device)

    return Terms(*(None if x is None else total(x) for x in terms))


class SumOfProducts(torch.autograd.Function):
    """Compute the sum of `Terms` for all pairs, [B, h, Q, K]; the sum can be differentiated once."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, scale: float, *tensors: Tensor | None) -> Tensor:
        """Return the sum of the `Terms` in `tensors` for all samples and heads; `scale` multiplies q'_i·k'_j."""
        ctx.save_for_backward(*tensors)
        ctx.kernel, ctx.scale = kernel, scale
        terms = Terms(*tensors)
        x, table = (terms.q, terms.for_queries) if terms.k is None else (terms.k, terms.for_keys)
        lengths = x.shape[2], table.shape[1] - x.shape[2] + 1  # the table has L = Q+K-1 entries
        out: Tensor = x.new_empty(*x.shape[:2], *(lengths if terms.k is None else lengths[::-1]))
        with torch.autocast(out.device.type, enabled=False):
            for chunk in chunks(out.shape, out.device):
                kernel.fill(out[chunk].flatten(0, 1), _of_chunk(terms, chunk), scale)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        terms = Terms(*ctx.saved_tensors)
        totals = _zeros_like(terms)
        with torch.autocast(grad.device.type, enabled=False):
            for chunk in chunks(grad.shape, grad.device):
                by_pair, part, for_part = grad[chunk].flatten(0, 1), _of_chunk(terms, chunk), _of_chunk(totals, chunk)
                ctx.kernel.fill_backward(by_pair, part, for_part)
                if terms.content_q is not None:
                    for_part.content_q.copy_(torch.bmm(by_pair, part.content_k).mul_(ctx.scale))
                    for_part.content_k.copy_(torch.bmm(by_pair.mT, part.content_q).mul_(ctx.scale))
        return None, None, *(None if x is None else total.to(x.dtype) for x, total in zip(terms, totals, strict=True))


class GatedProduct(torch.autograd.Function):
    """Compute M4M's (q_i·k_j) (o + q_i·a_ij) (o + k_j·a_ij) / sqrt(D) for all pairs, [B, h, Q, K].

    The result can be differentiated once.
    """

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, offset: float, keep: bool, q: Tensor, k: Tensor, table: Tensor) -> Tensor:
        """Return the gated product of contiguous q and k.

        Args:
            ctx: Context of autograd.
            kernel: Kernel that multiplies by the gates.
            offset: The number o that is added to both gates.
            keep: Whether to save the gates for the backward pass.
            q, k: [B, h, Q, D] and [B, h, K, D].
            table: Vectors a, [1 or h, Q+K-1, D], in the order of the distances.
        """
        terms, saved = Terms(q, k, table, None, None, None), list[Tensor]()
        out = q.new_empty(*q.shape[:3], k.shape[2])
        with torch.autocast(q.device.type, enabled=False):
            for chunk in chunks(out.shape, q.device):
                part, product = _of_chunk(terms, chunk), out[chunk].flatten(0, 1)
                torch.bmm(part.q * q.shape[-1] ** -0.5, part.k.mT, out=product)
                gates = kernel.gate(product, part.q, part.k, part.for_queries, offset)
                saved += gates if keep else ()
        ctx.save_for_backward(q, k, table, *saved)
        ctx.kernel, ctx.offset = kernel, offset
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, table, *saved = ctx.saved_tensors
        factor, terms = q.shape[-1] ** -0.5, Terms(q, k, table, None, None, None)
        totals, parts = _zeros_like(terms), list(chunks(grad.shape, grad.device))
        count = len(saved) // len(parts)
        with torch.autocast(q.device.type, enabled=False):
            for number, chunk in enumerate(parts):
                part, for_part, by_pair = _of_chunk(terms, chunk), _of_chunk(totals, chunk), grad[chunk].flatten(0, 1)
                gates = tuple(saved[number * count : (number + 1) * count])
                content = torch.bmm(part.q * factor, part.k.mT)
                for_content = ctx.kernel.gate_backward(content, by_pair, part, ctx.offset, gates, for_part)
                for_part.q.baddbmm_(for_content, part.k, alpha=factor)
                for_part.k.baddbmm_(for_content.mT, part.q, alpha=factor)
        return None, None, None, *totals[:3]
