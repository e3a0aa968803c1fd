"""Multiply all keys by their own vectors, as a decoding step does with its single query.

These products are not matrix products, and reading the keys takes most of their time. On a CPU, torch.compile turns
each formula below into one loop that reads the keys once. Elsewhere, torch stores a tensor of the size of the keys.

Legend: B batch, h heads, K keys, D head width. The functions take the keys k [B, h, K, D], a vector a_j for each key,
[1 or h, K, D], and the query, [B, h, 1, D].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .compiled import compiled, usable

#: Minimum size of the tensor of keys, in numbers, at which a compiled loop saves more time than its call takes.
LEAST = 1 << 16


def in_one_loop(k: Tensor) -> bool:
    """Return whether the functions below read the keys only once."""
    return k.dtype == torch.float32 and not torch.is_grad_enabled() and usable(k.numel(), LEAST, k.device)


def of_keys(k: Tensor, vectors: Tensor) -> Tensor:
    """Return k_j·a_j for all keys j, [B, h, 1, K]."""
    return _run(_of_keys, k, vectors)


def of_keys_and_query(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    """Return k_j·(q + a_j) for all keys j, [B, h, 1, K]."""
    return _run(_of_sum, k, vectors, query)


def of_all_three(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    """Return sum_d k_jd q_d a_jd for all keys j, [B, h, 1, K]."""
    return _run(_of_product, k, vectors, query)


def of_query_and_of_keys(k: Tensor, vectors: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
    """Return k_j·q and k_j·a_j for all keys j, [B, h, 1, K] each."""
    if in_one_loop(k):
        content, own = compiled(_of_both)(k, vectors, query)
        return content, own
    return torch.matmul(query, k.transpose(-1, -2)), _of_keys(k, vectors)


def _of_keys(k: Tensor, vectors: Tensor) -> Tensor:
    return (k * vectors).sum(-1).unsqueeze(2)


def _of_sum(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    return (k * (query + vectors)).sum(-1).unsqueeze(2)


def _of_product(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    return (k * (query * vectors)).sum(-1).unsqueeze(2)


def _of_both(k: Tensor, vectors: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
    return (k * query).sum(-1).unsqueeze(2), (k * vectors).sum(-1).unsqueeze(2)


def _run(formula: Callable[..., Tensor], k: Tensor, *others: Any) -> Tensor:
    loop = compiled(formula) if in_one_loop(k) else formula
    return loop(k, *others)
