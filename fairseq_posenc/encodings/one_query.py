"""One query, as decoding has: every key meets a vector of its own, which is no matrix product.

k_j . a_j of all keys reads each key once, as does q . k_j, and costs three times as much. So both are one product,
k_j . (q + a_j), where they are added, and of keys that share a vector it is a matrix product.

Legend: B batch, h heads, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .compiled import compiled, usable
from .precision import HALF

#: numbers of keys from which a compiled loop gains more than its call costs
LEAST = 1 << 19
#: of a vector [1 or h, 1, D] the rows that are multiplied with keys, and of keys and vectors their numbers
Row = Callable[[Tensor], Tensor]
Rest = Callable[..., Tensor]


def of_keys(k: Tensor, vectors: Tensor, shared: int = 0) -> Tensor:
    """k_j . a_j.

    Args:
        k: [B, h, K, D]. vectors: [1 or h, K, D], or less where the first are the same.
        shared: so many of the first keys meet the first vector, which is given once for them.
    Returns:
        [B, h, 1, K].
    """
    return _of_shared(k, vectors, shared, lambda a: a.expand(*k.shape[:2], 1, -1), _alone)


def of_keys_and_query(k: Tensor, vectors: Tensor, query: Tensor, shared: int = 0) -> Tensor:
    """k_j . (q + a_j): the query [B, h, 1, D], else as `of_keys`."""
    return _of_shared(k, vectors, shared, lambda a: query + a, _added, query)


def of_all_three(k: Tensor, vectors: Tensor, query: Tensor, shared: int = 0) -> Tensor:
    """sum_d k_jd q_d a_jd: the query [B, h, 1, D], else as `of_keys`."""
    return _of_shared(k, vectors, shared, lambda a: query * a, _multiplied, query)


def of_query_and_of_keys(k: Tensor, vectors: Tensor, query: Tensor, shared: int = 0) -> tuple[Tensor, Tensor]:
    """k_j . q and k_j . a_j, each key read once: the query [B, h, 1, D], else as `of_keys`."""

    def rows(a: Tensor) -> Tensor:
        return torch.cat([query, a.expand_as(query)], 2)

    both = _of_shared(k, vectors, shared, rows, _both, query)
    return both[:, :, :1], both[:, :, 1:]


def _of_shared(k: Tensor, vectors: Tensor, shared: int, row: Row, rest: Rest, *query: Tensor) -> Tensor:
    """The first keys by one product with the row that their vector makes, the others one by one."""
    if not shared:
        return rest(k, vectors, *query)
    same = torch.matmul(row(vectors[:, :1]), k[:, :, :shared].transpose(-1, -2))
    if shared == k.shape[2]:
        return same
    return torch.cat([same, rest(k[:, :, shared:], vectors[:, 1:], *query)], -1)


# -- one vector a key: compiled where that pays, otherwise with one tensor of the keys' size -----------------


def _alone(k: Tensor, vectors: Tensor) -> Tensor:
    if _compiles(k):
        return compiled(_sum_of_two)(k, vectors)
    return _sum_of_two(k, vectors)


def _added(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    if _compiles(k):
        return compiled(_sum_of_added)(k, vectors, query)
    return _sum_of_two(k, vectors) + torch.matmul(query, k.transpose(-1, -2))


def _multiplied(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    if _compiles(k):
        return compiled(_sum_of_three)(k, vectors, query)
    return torch.matmul(query, (k * vectors).transpose(-1, -2))


def _both(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    """[B, h, 2, K]."""
    if _compiles(k):
        return compiled(_both_sums)(k, vectors, query)
    return torch.cat([torch.matmul(query, k.transpose(-1, -2)), _sum_of_two(k, vectors)], 2)


def _compiles(k: Tensor) -> bool:
    return not torch.is_grad_enabled() and k.dtype not in HALF and usable(k.numel(), LEAST, k.device)


def _sum_of_two(k: Tensor, vectors: Tensor) -> Tensor:
    return (k * vectors).sum(-1).unsqueeze(2)


def _sum_of_added(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    return (k * (query + vectors)).sum(-1).unsqueeze(2)


def _sum_of_three(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    return (k * (query * vectors)).sum(-1).unsqueeze(2)


def _both_sums(k: Tensor, vectors: Tensor, query: Tensor) -> Tensor:
    return torch.stack([(k * query).sum(-1), (k * vectors).sum(-1)], 2)
