"""One query, as decoding has: every key meets a vector of its own, which is no matrix product.

k_j . a_j of all keys reads each key once, as does q . k_j. So both are made together: one sum, k_j . (q + a_j), where
they are added, or two at a time, in C++ (cpp.py). Without a compiler, or with gradients, one tensor has the keys'
size, three times the cost; of keys that share a vector it is a matrix product.

Legend: B batch, h heads, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from . import cpp
from .compiled import eagerly

#: numbers of keys from which the loop in C++ gains more than its call costs
LEAST = 1 << 16
#: of a vector [1 or h, 1, D] the rows that are multiplied with keys, and of keys and vectors their numbers
Row = Callable[[Tensor], Tensor]
Rest = Callable[[Tensor, Tensor], Tensor]


def of_keys(k: Tensor, vectors: Tensor, shared: int = 0) -> Tensor:
    """Return k_j . a_j.

    Args:
        k: [B, h, K, D]. vectors: [1 or h, K, D], or less where the first are the same.
        shared: so many of the first keys meet the first vector, which is given once for them.
    Returns:
        [B, h, 1, K].
    """
    return _sums("alone", k, vectors, None, shared, lambda a: a.expand(*k.shape[:2], 1, -1), _one_by_one)


def of_keys_and_query(k: Tensor, vectors: Tensor, query: Tensor, shared: int = 0) -> Tensor:
    """Return k_j . (q + a_j): the query [B, h, 1, D], else as `of_keys`."""

    def rest(k: Tensor, a: Tensor) -> Tensor:
        return _one_by_one(k, a) + _product(query, k)

    return _sums("added", k, vectors, query, shared, lambda a: query + a, rest)


def of_all_three(k: Tensor, vectors: Tensor, query: Tensor, shared: int = 0) -> Tensor:
    """Return sum_d k_jd q_d a_jd: the query [B, h, 1, D], else as `of_keys`."""
    return _sums("multiplied", k, vectors, query, shared, lambda a: query * a, lambda k, a: _product(query, k * a))


def of_query_and_of_keys(k: Tensor, vectors: Tensor, query: Tensor, shared: int = 0) -> tuple[Tensor, Tensor]:
    """Return k_j . q and k_j . a_j, each key read once: the query [B, h, 1, D], else as `of_keys`."""

    def row(a: Tensor) -> Tensor:
        return torch.cat([query, a.expand_as(query)], 2)

    def rest(k: Tensor, a: Tensor) -> Tensor:
        return torch.cat([_product(query, k), _one_by_one(k, a)], 2)

    both = _sums("both", k, vectors, query, shared, row, rest)
    return both[:, :, :1], both[:, :, 1:]


def _sums(way: str, k: Tensor, vectors: Tensor, query: Tensor | None, shared: int, row: Row, rest: Rest) -> Tensor:
    """Return the sums over D of all keys: in C++ (`way`: see cpp.py), or by what `row` and `rest` say.

    The first keys meet one product with the row that their vector makes, the others one by one.
    """
    if _natively(*((k, vectors) if query is None else (k, vectors, query))):
        return cpp.single_query(way, k, vectors, query, shared)
    if not shared:
        return rest(k, vectors)
    same = _product(row(vectors[:, :1]), k[:, :, :shared])
    if shared == k.shape[2]:
        return same
    return torch.cat([same, rest(k[:, :, shared:], vectors[:, 1:])], -1)


def _natively(k: Tensor, *others: Tensor) -> bool:
    single = all(x.dtype == torch.float32 and x.device.type == "cpu" for x in (k, *others))
    alone = single and not torch.is_grad_enabled() and eagerly()  # asked first: a graph would keep the size as a guard
    return alone and k.numel() >= LEAST and cpp.works("single_query")


def _product(rows: Tensor, k: Tensor) -> Tensor:
    return torch.matmul(rows, k.transpose(-1, -2))


def _one_by_one(k: Tensor, vectors: Tensor) -> Tensor:
    return (k * vectors).sum(-1).unsqueeze(2)
