"""Passes over all pairs that are ours in C++, compiled once a process where a compiler is there.

M3's product of three vectors (triple.cpp) takes two thirds of a compiled loop's time: torch.compile sums one pair after
another, and moves and adds more than it multiplies; the two multiplications a number, twice those of a matrix product,
are nearly all that this does. Where far distances share a vector (far.cpp) a query has few different products, which
torch would write out for all keys, over and over, before it adds or multiplies them. In decoding (one.cpp) each key
meets a vector of its own, and to read the keys is nearly all there is to do: once, here.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .compiled import compiler

logger = logging.getLogger(__name__)

#: source -> what it makes, for who has no compiler
SOURCES = {
    "triple": "M3's products are made by compiled loops",
    "far": "Products with distances are written out and transposed by torch",
    "one": "A step of decoding makes a tensor the size of its keys",
}
#: no -ffast-math: with it some compilers make the whole process flush denormal numbers
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fopenmp", "-shared", "-fPIC")
_POINTER, _SIZE, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
#: what becomes of a key: see `one_query`
WAYS = ("alone", "added", "multiplied", "both")
_DECLARED: dict[str, dict[str, list[Any]]] = {
    "one": {"one_query": [*[_POINTER] * 4, _SIZE, _POINTER, *[_SIZE] * 5, _INT, _INT]},
    "triple": {"triple": [*[_POINTER] * 7, *[_SIZE] * 6, _INT], "triple_scratch": [_SIZE] * 5},
    "far": {
        "far_spread": [*[_POINTER] * 3, *[_SIZE] * 5, _INT, _INT],
        "far_spread_backward": [*[_POINTER] * 3, *[_SIZE] * 5, _INT],
        "far_across": [*[_POINTER] * 2, *[_SIZE] * 8, _INT],
        "far_across_backward": [*[_POINTER] * 2, *[_SIZE] * 8, _INT],
        "far_gates": [*[_POINTER] * 3, *[_SIZE] * 5, _FLOAT, _INT],
        "far_gates_backward": [*[_POINTER] * 6, *[_SIZE] * 5, _FLOAT, _INT],
    },
}


def works(source: str) -> bool:
    """Whether a source can be compiled here; tried once, and said once if not."""
    return _library(source) is not None


def products(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    """sum_d q_id k_jd a_ijd, float32 on a CPU: see `fused.products`. No gradients; vectors contiguous."""
    library = _library("triple")
    assert library is not None
    q, k = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k))
    batch, heads, queries, dim = q.shape
    keys, tables = k.shape[2], len(vectors)
    fit = k.shape == (batch, heads, keys, dim) and vectors.shape == (tables, queries + keys - 1, dim)
    assert fit, "read without a look at their sizes"
    assert tables in (1, heads)
    out = q.new_empty(batch, heads, queries, keys)
    scratch = q.new_empty(library.triple_scratch(batch * heads, queries, keys, dim, tables))
    strides = [(ctypes.c_int64 * 3)(*x.stride()[:3]) for x in (q, k)]
    given = q.data_ptr(), strides[0], k.data_ptr(), strides[1], vectors.data_ptr(), out.data_ptr(), scratch.data_ptr()
    library.triple(*given, batch, heads, queries, keys, dim, tables, torch.get_num_threads())
    return out


def one_query(way: str, k: Tensor, vectors: Tensor, q: Tensor | None, shared: int) -> Tensor:
    """Of one query, sums over D, float32 on a CPU: see one_query.py. No gradients.

    Args:
        way: `alone`: k_j . a_j; `added`: k_j . (q + a_j); `multiplied`: the sum of k_j q a_j; `both`: also k_j . q.
        k: [B, h, K, D]. vectors: [1 or h, K, D], or less, where the first `shared` keys meet the first.
        q: [B, h, 1, D], but for `alone`.
    Returns:
        [B, h, 1, K], of `both` [B, h, 2, K].
    """
    library = _library("one")
    assert library is not None
    k = k if k.stride(-1) == 1 else k.contiguous()
    batch, heads, keys, dim = k.shape
    vectors = vectors if vectors.stride()[1:] == (dim, 1) else vectors.contiguous()
    q = None if q is None else q.contiguous()
    tables, wanted = len(vectors), keys - shared + 1 if shared else keys
    assert vectors.shape[1:] == (wanted, dim), "read without a look at their sizes"
    assert tables in (1, heads)
    assert q is None if way == "alone" else q is not None and q.shape == (batch, heads, 1, dim)
    out = k.new_empty(batch, heads, 2 if way == "both" else 1, keys)
    given = k.data_ptr(), (ctypes.c_int64 * 3)(*k.stride()[:3]), None if q is None else q.data_ptr(), vectors.data_ptr()
    sizes = batch, heads, keys, dim, shared
    step = vectors.stride(0) if tables > 1 else 0
    library.one_query(*given, step, out.data_ptr(), *sizes, WAYS.index(way), torch.get_num_threads())
    return out


def spread(out: Tensor, of_query: Tensor | None, of_key: Tensor | None, first: int, add: bool) -> None:
    """of_query_i[e] + of_key_j[e], or what is given of it, into `out`; float32 on a CPU. No gradients.

    Args:
        out: [G, Q, K]. of_query, of_key: [G, Q, E] and [G, K, E], e = j - i + Q - 1 - first, from 0 to E - 1 where it
            is beyond. All contiguous.
        add: to what is there.
    """
    _far("far_spread", out, [out, of_query, of_key], of_query, of_key, first, int(add))


def spread_backward(grad: Tensor, of_query: Tensor | None, of_key: Tensor | None, first: int) -> None:
    """The gradients of `spread` into zeros of the size of what it was given."""
    _far("far_spread_backward", grad, [grad, of_query, of_key], of_query, of_key, first)


def gates(content: Tensor, of_query: Tensor, of_key: Tensor, first: int, offset: float) -> None:
    """content_ij (o + of_query_i[e]) (o + of_key_j[e]) in place of the content; else as `spread`."""
    _far("far_gates", content, [content, of_query, of_key], of_query, of_key, first, offset)


def gates_backward(
    content: Tensor, grad: Tensor, of_query: Tensor, of_key: Tensor, first: int, offset: float
) -> tuple[Tensor, Tensor]:
    """The gradients of both gates, and in place of the content its own; `grad` is that of what `gates` makes."""
    made = torch.zeros_like(of_query), torch.zeros_like(of_key)
    tensors = [content, grad, of_query, of_key, *made]
    _far("far_gates_backward", content, tensors, of_query, of_key, first, offset)
    return made


def across(pairs: Tensor, window: Tensor, start: int, top: int) -> None:
    """Write a window of some columns' products, by distance, into pairs; float32 on a CPU. No gradients.

    Args:
        pairs: [G, R, C], of which the columns from `start` on and the rows from `top` on get theirs.
        window: [T, G/T, columns, W]: row r is entry r - c + columns - 1 of column c. Both contiguous.
    """
    _across("far_across", pairs, window, start, top)


def across_backward(pairs: Tensor, window: Tensor, start: int, top: int) -> None:
    """Write the pairs, their gradients say, into a window: the other way."""
    _across("far_across_backward", pairs, window, start, top)


def _across(name: str, pairs: Tensor, window: Tensor, start: int, top: int) -> None:
    library = _library("far")
    assert library is not None
    (matrices, rows, columns), (tables, samples, some, width) = pairs.shape, window.shape
    fit = tables * samples == matrices and start + some <= columns and top + width - some + 1 <= rows
    assert fit, "read without a look at their sizes"
    assert all(x.is_contiguous() and x.dtype == torch.float32 for x in (pairs, window))
    sizes = matrices, tables, rows, columns, start, some, top, width
    getattr(library, name)(pairs.data_ptr(), window.data_ptr(), *sizes, torch.get_num_threads())


def _far(
    name: str,
    pairs: Tensor,
    tensors: Sequence[Tensor | None],
    of_query: Tensor | None,
    of_key: Tensor | None,
    first: int,
    *more: float,
) -> None:
    """Call it with the tensors and sizes that it is given; `more` as declared."""
    library = _library("far")
    assert library is not None
    matrices, queries, keys = pairs.shape
    (vectors,) = {x.shape[-1] for x in (of_query, of_key) if x is not None}
    for x, length in ((of_query, queries), (of_key, keys)):
        assert x is None or x.shape == (matrices, length, vectors), "read without a look at their sizes"
    assert all(x is None or (x.is_contiguous() and x.dtype == torch.float32) for x in tensors)
    pointers = [None if x is None else x.data_ptr() for x in tensors]
    getattr(library, name)(*pointers, matrices, queries, keys, first, vectors, *more, torch.get_num_threads())


@functools.cache
def _library(source: str) -> ctypes.CDLL | None:
    """In a folder of this process, gone once it is loaded: it takes half a second, and no machine reads another's."""
    try:
        with tempfile.TemporaryDirectory(prefix="fairseq_posenc-") as folder:
            path = f"{folder}/{source}.so"
            command = [compiler(), *FLAGS, str(Path(__file__).with_name(f"{source}.cpp")), "-o", path]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
            library = ctypes.CDLL(path)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()
        logger.warning("%s, which is slower: %s", SOURCES[source], said[0] if said else error)
        return None
    for name, declared in _DECLARED[source].items():
        function = getattr(library, name)
        function.argtypes, function.restype = declared, _SIZE if name == "triple_scratch" else None
    return library
