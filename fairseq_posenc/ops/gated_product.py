"""The product of content and two gates of relative vectors, with a backward that makes one gate again (M4M).

Legend: as in blocked_products.py; the G matrices of some heads at a time, so that what is made of them stays small.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .blocked_products import Vectors, fill, fill_across, gradients, in_cache, of_chunk, some_at_a_time


class GatedProduct(torch.autograd.Function):
    """(q_i . k_j) (o + q_i . a_ij) (o + k_j . a_ij) / sqrt(D), [B, h, Q, K]. Differentiable once.

    Keeps the gate of the keys, which costs more to make than that of the queries, and no other tensor of its size.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, table: Tensor, offset: float, flat: tuple[int, int], keep: bool
    ) -> Tensor:
        """q and k contiguous; table [1 or h, Q+K-1, D] in the order of the distances; `flat`: see `Vectors`.

        `keep`: there will be a backward.
        """
        out = q.new_empty(*q.shape[:3], k.shape[2])
        kept = torch.empty_like(out) if keep else None
        with torch.autocast(q.device.type, enabled=False):
            for at in some_at_a_time(out.shape, q.device):
                q_some, k_some, made = (x[at].flatten(0, 1) for x in (q, k, out))  # views
                vectors = Vectors(of_chunk(table, at), *flat)
                torch.bmm(q_some * q.shape[-1] ** -0.5, k_some.mT, out=made)
                of_key = torch.empty_like(made) if kept is None else kept[at].flatten(0, 1)
                fill_across(of_key, k_some, vectors)
                _multiply(made, _raised(of_key, offset), _of_query(q_some, vectors, offset, made))
        ctx.save_for_backward(q, k, table, kept)
        ctx.given = offset, flat
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, table, kept = ctx.saved_tensors
        offset, flat = ctx.given
        for_q, for_k, for_table = torch.empty_like(q), torch.empty_like(k), torch.zeros_like(table)
        with torch.autocast(q.device.type, enabled=False):
            for at in some_at_a_time(grad.shape, grad.device):
                q_some, k_some, of_key, by_pair = (x[at].flatten(0, 1) for x in (q, k, kept, grad))
                found = _backward(q_some, k_some, of_key, by_pair, Vectors(of_chunk(table, at), *flat), offset)
                for_q[at], for_k[at] = found[0].view(for_q[at].shape), found[1].view(for_k[at].shape)
                of_chunk(for_table, at).add_(found[2])
        return for_q, for_k, for_table, None, None, None


def _of_query(q: Tensor, vectors: Vectors, offset: float, like: Tensor) -> Tensor:
    """o + q_i . a_ij, [G, Q, K]."""
    made = torch.empty_like(like)
    fill(made, q, vectors)
    return _raised(made, offset)


def _raised(gate: Tensor, offset: float) -> Tensor:
    """In place."""
    return gate.add_(offset) if offset else gate


def _multiply(content: Tensor, of_key: Tensor, of_query: Tensor) -> None:
    """In place of the content."""
    for c, key, query in in_cache(content, of_key, of_query):
        c.mul_(key).mul_(query)


def _multiply_for_gates(content: Tensor, of_query: Tensor, of_key: Tensor, grad: Tensor, out: Tensor) -> None:
    """`out`, the content and the gate of the queries: the gradients of key gate, query gate and content."""
    for c, query, key, given, made in in_cache(content, of_query, of_key, grad, out):
        torch.mul(c.mul_(given), query, out=made)
        c.mul_(key)
        query.mul_(given).mul_(key)


def _backward(
    q: Tensor, k: Tensor, of_key: Tensor, grad: Tensor, vectors: Vectors, offset: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and the table, given the gate of the keys and the gradient of the product, [G, Q, K] each."""
    factor = q.shape[-1] ** -0.5
    of_query = _of_query(q, vectors, offset, of_key)
    content = torch.bmm(q * factor, k.mT)
    for_key = torch.empty_like(content)
    _multiply_for_gates(content, of_query, of_key, grad, for_key)
    for_query, for_content = content, of_query
    for_k, for_table = gradients(for_key.mT, k, vectors.flipped())
    del for_key
    for_q, also = gradients(for_query, q, vectors)
    for_q.baddbmm_(for_content, k, alpha=factor)
    for_k.baddbmm_(for_content.mT, q, alpha=factor)
    return for_q, for_k, for_table.flip(-2).add_(also)
