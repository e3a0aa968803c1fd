"""Multiply keys by relative vectors for a single query, as in a decoding step.

The vector a_j belongs to the distance between the query and key j. Most keys have a vector of their own, so the
products k_j·a_j of all keys are not a matrix product. C++ (cpp.py) computes k_j·a_j and q·k_j together, and so reads
each key only once. Without a compiler, or with gradients, torch makes a tensor of the size of the keys and takes three
times as long. For keys that share a vector, torch uses a matrix product.

Legend: B batch, h heads, K keys, D head width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from . import cpp
from .compiled import eagerly

#: Minimum size of the tensor of keys, in numbers, at which the C++ loop saves more time than its call takes.
LEAST = 1 << 16
#: `Row` turns a shared vector [1 or h, 1, D] into the rows whose products with the keys are the result. `Rest` turns
#: keys and their own vectors into the result.
Row = Callable[[Tensor], Tensor]
Rest = Callable[[Tensor, Tensor], Tensor]


def of_keys(k: Tensor, vectors: Tensor, shared: int = 0) -> Tensor:
    """Return k_j·a_j for all keys j, [B, h, 1, K].

    Args:
        k: Keys, [B, h, K, D].
        vectors: The vectors a_j, [1 or h, K, D], or [1 or h, K - shared + 1, D] if the first `shared` keys share a
            vector.
        shared: Number of keys at the beginning that share the first vector; 0 if every key has a vector of its own.
    """
    return _sums("alone", k, vectors, None, shared, lambda a: a.expand(*k.shape[:2], 1, -1), _one_by_one)


def of_keys_and_query(k: Tensor, vectors: Tensor, query: Tensor, shared: int = 0) -> Tensor:
    """Return k_j·(q + a_j) for the query [B, h, 1, D] and all keys, [B, h, 1, K]; see `of_keys`."""

    def rest(k: Tensor, a: Tensor) -> Tensor:
        return _one_by_one(k, a) + _product(query, k)

    return _sums("added", k, vectors, query, shared, lambda a: query + a, rest)


def of_all_three(k: Tensor, vectors: Tensor, query: Tensor, shared: int = 0) -> Tensor:
    """Return sum_d k_jd q_d a_jd for the query [B, h, 1, D] and all keys, [B, h, 1, K]; see `of_keys`."""
    return _sums("multiplied", k, vectors, query, shared, lambda a: query * a, lambda k, a: _product(query, k * a))


def of_query_and_of_keys(k: Tensor, vectors: Tensor, query: Tensor, shared: int = 0) -> tuple[Tensor, Tensor]:
    """Return k_j·q and k_j·a_j for the query [B, h, 1, D] and all keys, [B, h, 1, K] each; see `of_keys`."""

    def row(a: Tensor) -> Tensor:
        return torch.cat([query, a.expand_as(query)], 2)

    def rest(k: Tensor, a: Tensor) -> Tensor:
        return torch.cat([_product(query, k), _one_by_one(k, a)], 2)

    both = _sums("both", k, vectors, query, shared, row, rest)
    return both[:, :, :1], both[:, :, 1:]


def _sums(way: str, k: Tensor, vectors: Tensor, query: Tensor | None, shared: int, row: Row, rest: Rest) -> Tensor:
    """Return the products that `way` names, computed in C++ if possible, otherwise by the functions `row` and `rest`.

    Without C++, the function `row` turns the vector of the first `shared` keys into rows, and one matrix product
    multiplies these keys by the rows. The function `rest` computes the products of all other keys, which have vectors
    of their own.

    Args:
        way: Value of the argument `way` of `cpp.single_query` that computes the same products.
        k, vectors, shared: See `of_keys`.
        query: [B, h, 1, D], or None if the products do not contain the query.
        row: Function that turns the shared vector into the rows of the matrix product.
        rest: Function that takes the keys that have a vector of their own and these vectors, and returns the products.
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
    # `eagerly` comes before the size, because otherwise compiled graphs would depend on the size.
    alone = single and not torch.is_grad_enabled() and eagerly()
    return alone and k.numel() >= LEAST and cpp.works("single_query")


def _product(rows: Tensor, k: Tensor) -> Tensor:
    return torch.matmul(rows, k.transpose(-1, -2))


def _one_by_one(k: Tensor, vectors: Tensor) -> Tensor:
    return (k * vectors).sum(-1).unsqueeze(2)
