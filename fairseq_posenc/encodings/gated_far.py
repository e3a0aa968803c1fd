"""M4M's product where far distances share a vector, on a CPU: `GatedProduct` with far fewer numbers.

A gate has only as many numbers a query, or a key, as there are vectors: a quarter of the keys, say. They stay so few,
and are kept for the backward; one pass in C++ (native.py) multiplies them into the content.

Legend: as in windows.py; E vectors that are not the same, from flat[0] to flat[1] (`windows.Vectors`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import native
from .windows import collect, of_chunk, of_groups, some_at_a_time


def serves(q: Tensor, k: Tensor, table: Tensor, flat: tuple[int, int]) -> bool:
    """Whether it does: float32, distances that share a vector, and a compiler."""
    single = q.device.type == "cpu" and q.dtype == k.dtype == table.dtype == torch.float32
    return flat[0] >= 0 and single and native.works("gates")


def _entries(flat: tuple[int, int]) -> slice:
    """Of the vectors that are not the same; in a decoder with memory the last may be beyond the table."""
    return slice(flat[0], flat[1] + 1)


class FarGatedProduct(torch.autograd.Function):
    """(q_i . k_j) (o + q_i . a_ij) (o + k_j . a_ij) / sqrt(D), [B, h, Q, K]. Differentiable once."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, table: Tensor, offset: float, flat: tuple[int, int]) -> Tensor:
        """As `GatedProduct`; the table's entries up to flat[0] and from flat[1] on are one vector each."""
        out = q.new_empty(*q.shape[:3], k.shape[2])
        near = table[:, _entries(flat)]
        of_query, of_key = (x.new_empty(*x.shape[:3], near.shape[1]) for x in (q, k))
        with torch.autocast("cpu", enabled=False):
            for at in some_at_a_time(out.shape, q.device):
                q_some, k_some, made = (x[at].flatten(0, 1) for x in (q, k, out))  # views
                gate_q, gate_k = (x[at].flatten(0, 1) for x in (of_query, of_key))
                vectors = of_groups(of_chunk(near, at), len(q_some)).mT
                torch.bmm(q_some, vectors, out=gate_q)
                torch.bmm(k_some, vectors, out=gate_k)
                torch.bmm(q_some * q.shape[-1] ** -0.5, k_some.mT, out=made)
                native.gates(made, gate_q, gate_k, flat[0], offset)
        ctx.save_for_backward(q, k, table, of_query, of_key)
        ctx.given = offset, flat
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, table, *kept = ctx.saved_tensors
        offset, flat = ctx.given
        near, factor, grad = table[:, _entries(flat)], q.shape[-1] ** -0.5, grad.contiguous()
        for_q, for_k, for_table = torch.empty_like(q), torch.empty_like(k), torch.zeros_like(table)
        with torch.autocast("cpu", enabled=False):
            for at in some_at_a_time(grad.shape, grad.device):
                q_some, k_some, given = (x[at].flatten(0, 1) for x in (q, k, grad))
                gate_q, gate_k = (x[at].flatten(0, 1) for x in kept)
                content = torch.bmm(q_some * factor, k_some.mT)
                for_query, for_key = native.gates_backward(content, given, gate_q, gate_k, flat[0], offset)
                vectors = of_groups(of_chunk(near, at), len(q_some))
                by_query = torch.bmm(for_query, vectors).baddbmm_(content, k_some, alpha=factor)
                by_key = torch.bmm(for_key, vectors).baddbmm_(content.mT, q_some, alpha=factor)
                for_q[at], for_k[at] = by_query.view(for_q[at].shape), by_key.view(for_k[at].shape)
                for x, gate in ((q_some, for_query), (k_some, for_key)):
                    collect(of_chunk(for_table, at), _entries(flat), gate, x)
        return for_q, for_k, for_table, None, None
