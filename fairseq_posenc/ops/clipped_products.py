"""Products with the vectors of all distances where far ones share a vector, on a CPU: with far fewer numbers.

A query, or a key, has only as many products as there are vectors: a quarter of the keys, say. They stay so few; one
pass in C++ (cpp.py) adds them to the content, or multiplies them in (M4M).

Legend: as in blocked_products.py; E vectors that are not the same, from flat[0] to flat[1] (`Vectors` there).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import cpp
from .blocked_products import collect, of_chunk, of_groups, some_at_a_time, times, zeros_like


def serves(flat: tuple[int, int], queries: int, k: Tensor | None, *others: Tensor | None) -> bool:
    """Whether this does: distances that share a vector, float32, and a compiler.

    A key meets as many distances as there are `queries`; where they are fewer than the vectors, windows are less work.
    """
    given = [x for x in (k, *others) if x is not None]
    single = all(x.device.type == "cpu" and x.dtype == torch.float32 for x in given)
    worth = flat[0] >= 0 and (k is None or queries >= flat[1] - flat[0])
    return worth and single and cpp.works("clipped_products")


def _entries(flat: tuple[int, int]) -> slice:
    """Of the vectors that are not the same; in a decoder with memory the last may be beyond the table."""
    return slice(flat[0], flat[1] + 1)


def _products(x: Tensor | None, table: Tensor | None, at: tuple[slice, slice], flat: tuple[int, int]) -> Tensor | None:
    """[G, R, E] of a chunk of x [B, h, R, D]."""
    if x is None or table is None:
        return None
    some = x[at].flatten(0, 1)
    return torch.bmm(some, of_groups(of_chunk(table, at)[:, _entries(flat)], len(some)).mT)


class ClippedProducts(torch.autograd.Function):
    """As `blocked_products.BlockedProducts`, float32."""

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
        ctx.save_for_backward(q, k, for_queries, for_keys, content_q, content_k)
        ctx.scale, ctx.flat = scale, flat
        given = q if q is not None else k
        assert given is not None
        out = given.new_empty(shape)
        with torch.autocast("cpu", enabled=False):
            for at in some_at_a_time(shape, out.device):
                part = out[at].flatten(0, 1)  # a view
                of_query, of_key = _products(q, for_queries, at, flat), _products(k, for_keys, at, flat)
                if content_q is not None and content_k is not None:
                    torch.bmm(content_q[at].flatten(0, 1) * scale, content_k[at].flatten(0, 1).mT, out=part)
                cpp.spread(part, of_query, of_key, flat[0], add=content_q is not None)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, for_queries, for_keys, content_q, content_k = given = ctx.saved_tensors
        made: list[Any] = [None if x is None else zeros_like(x) for x in given]
        grad, flat = grad.contiguous(), ctx.flat
        with torch.autocast("cpu", enabled=False):
            for at in some_at_a_time(grad.shape, grad.device):
                by_pair = grad[at].flatten(0, 1)
                by_query, by_key = (_zeros(x, table, at, flat) for x, table in ((q, for_queries), (k, for_keys)))
                cpp.spread_backward(by_pair, by_query, by_key, flat[0])
                _give(by_query, q, for_queries, at, flat, made[0], made[2])
                _give(by_key, k, for_keys, at, flat, made[1], made[3])
                if content_q is not None:
                    times(by_pair, content_k[at], ctx.scale, made[4][at])
                    times(by_pair.mT, content_q[at], ctx.scale, made[5][at])
        return *made, None, None, None


def _zeros(x: Tensor | None, table: Tensor | None, at: tuple[slice, slice], flat: tuple[int, int]) -> Tensor | None:
    """Of the shape of `_products`."""
    if x is None or table is None:
        return None
    some = x[at].flatten(0, 1)
    return some.new_zeros(*some.shape[:2], table[:, _entries(flat)].shape[1])


def _give(
    by_entry: Tensor | None,
    x: Tensor,
    table: Tensor,
    at: tuple[slice, slice],
    flat: tuple[int, int],
    for_x: Tensor,
    for_table: Tensor,
) -> None:
    """The gradients of x and of the table, given those of their products."""
    if by_entry is not None:
        some = x[at].flatten(0, 1)
        vectors = of_groups(of_chunk(table, at)[:, _entries(flat)], len(some))
        for_x[at] = torch.bmm(by_entry, vectors).view(for_x[at].shape)
        collect(of_chunk(for_table, at), _entries(flat), by_entry, some)


class ClippedGatedProduct(torch.autograd.Function):
    """(q_i . k_j) (o + q_i . a_ij) (o + k_j . a_ij) / sqrt(D), [B, h, Q, K]. Differentiable once."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, table: Tensor, offset: float, flat: tuple[int, int]) -> Tensor:
        """As `GatedProduct`; the table's entries up to flat[0] and from flat[1] on are one vector each."""
        out = q.new_empty(*q.shape[:3], k.shape[2])
        kept: list[Any] = []
        with torch.autocast("cpu", enabled=False):
            for at in some_at_a_time(out.shape, q.device):
                part = out[at].flatten(0, 1)  # a view
                kept += [_products(x, table, at, flat) for x in (q, k)]
                torch.bmm(q[at].flatten(0, 1) * q.shape[-1] ** -0.5, k[at].flatten(0, 1).mT, out=part)
                cpp.gates(part, kept[-2], kept[-1], flat[0], offset)
        ctx.save_for_backward(q, k, table, *kept)
        ctx.given = offset, flat
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, table, *kept = ctx.saved_tensors
        offset, flat = ctx.given
        factor, grad, gates = q.shape[-1] ** -0.5, grad.contiguous(), iter(kept)
        made = [zeros_like(x) for x in (q, k, table)]
        with torch.autocast("cpu", enabled=False):
            for at in some_at_a_time(grad.shape, grad.device):
                content = torch.bmm(q[at].flatten(0, 1) * factor, k[at].flatten(0, 1).mT)
                pair = next(gates), next(gates)
                found = cpp.gates_backward(content, grad[at].flatten(0, 1), *pair, flat[0], offset)
                for by_entry, x, for_x in zip(found, (q, k), made[:2], strict=True):
                    _give(by_entry, x, table, at, flat, for_x, made[2])
                made[0][at] += torch.bmm(content, k[at].flatten(0, 1)).mul_(factor).view(made[0][at].shape)
                made[1][at] += torch.bmm(content.mT, q[at].flatten(0, 1)).mul_(factor).view(made[1][at].shape)
        return *made, None, None
