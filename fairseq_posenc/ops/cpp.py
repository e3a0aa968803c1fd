"""Call C++ functions that compute one product for every pair of a query and a key.

The C++ sources are compiled once per machine if there is a compiler (build.py). Each source computes its products
faster than torch:

- trilinear.cpp computes M3's product of three vectors in two thirds of the time that torch.compile needs.
- clipped_products.cpp is for distances that share a vector. The products with the few
  different vectors are computed once; torch would have to copy them to all pairs before it adds or multiplies them.
- single_query.cpp reads each key only once in a decoding step, because reading the keys takes most of the time.

No function of cpp.py records gradients. Each function checks its tensors first (cpp_checks.py), because C++ does not
check bounds.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import subprocess
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .build import shared_library
from .cpp_checks import (
    clipped_numbers,
    pointer,
    require_between,
    require_contiguous,
    require_readable,
    require_shape,
    require_tables,
)

logger = logging.getLogger(__name__)

#: C++ sources, each with the consequence that is logged if the source cannot be compiled or loaded.
SOURCES = {
    "trilinear": "the position encoding m3 is slower",
    "clipped_products": "position encodings with the option clip are slower",
    "single_query": "text generation with relative position encodings is slower",
}
_POINTER, _SIZE, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_float
#: The ways to combine keys, vectors and query (see `single_query`), with their numbers in single_query.cpp.
WAYS = {"alone": 0, "added": 1, "multiplied": 2, "both": 3}
_DECLARED: dict[str, dict[str, list[Any]]] = {
    "single_query": {"single_query": [*[_POINTER] * 4, _SIZE, _POINTER, *[_SIZE] * 5, _INT, _INT]},
    "trilinear": {"trilinear": [*[_POINTER] * 7, *[_SIZE] * 6, _INT], "trilinear_scratch": [_SIZE] * 5},
    "clipped_products": {
        "clipped_spread": [*[_POINTER] * 3, *[_SIZE] * 5, _INT, _INT],
        "clipped_spread_backward": [*[_POINTER] * 3, *[_SIZE] * 5, _INT],
        "clipped_across": [*[_POINTER] * 2, *[_SIZE] * 8, _INT],
        "clipped_across_backward": [*[_POINTER] * 2, *[_SIZE] * 8, _INT],
        "clipped_gates": [*[_POINTER] * 3, *[_SIZE] * 5, _FLOAT, _INT],
        "clipped_gates_backward": [*[_POINTER] * 6, *[_SIZE] * 5, _FLOAT, _INT],
    },
}


def works(source: str) -> bool:
    """Return whether a C++ source can be compiled on this machine, and log a failure once."""
    return _library(source) is not None


def trilinear(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    """Return M3's product sum_d q_id k_jd a_ijd for all queries i and keys j; see `trilinear.products`.

    Args:
        q: [B, h, Q, D]. k: [B, h, K, D].
        vectors: [1 or h, Q+K-1, D], contiguous.
    Returns:
        [B, h, Q, K].
    """
    for name, tensor, dims in (("q", q, 4), ("k", k, 4), ("vectors", vectors, 3)):
        require_readable("trilinear", name, tensor, dims)
    batch, heads, queries, dim = q.shape
    keys, tables = k.shape[2], len(vectors)
    length = max(queries + keys - 1, 0)
    require_shape("trilinear", "k", k, (batch, heads, keys, dim), "as many samples and heads as `q`, and its width")
    require_shape(
        "trilinear",
        "vectors",
        vectors,
        (tables, length, dim),
        "in each table, one vector of the width of `q` for every distance",
    )
    require_tables("trilinear", tables, heads)
    require_contiguous("trilinear", "vectors", vectors)
    library = _compiled("trilinear", "trilinear")
    q, k = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k))
    out = q.new_empty(batch, heads, queries, keys)
    if not out.numel():  # the C++ code would divide by 0, the number of tiles
        return out
    scratch = q.new_empty(library.trilinear_scratch(batch * heads, queries, keys, dim, tables))
    strides = [(ctypes.c_int64 * 3)(*x.stride()[:3]) for x in (q, k)]
    from_q, from_k, table = (pointer("trilinear", *x) for x in (("q", q), ("k", k), ("vectors", vectors)))
    tensors = from_q, strides[0], from_k, strides[1], table, out.data_ptr(), scratch.data_ptr()
    library.trilinear(*tensors, batch, heads, queries, keys, dim, tables, torch.get_num_threads())
    return out


def single_query(way: str, k: Tensor, vectors: Tensor, q: Tensor | None, shared: int) -> Tensor:
    """Return the products of each key with its vector and with a single query; see single_query.py.

    Args:
        way: `alone` for k_j·a_j, `added` for k_j·(q + a_j), `multiplied` for sum_d k_jd q_d a_jd, and `both` for
            k_j·q and k_j·a_j.
        k: [B, h, K, D].
        vectors: [1 or h, K, D], or [1 or h, K - shared + 1, D] if the first `shared` keys share the first vector.
        q: [B, h, 1, D], or None if `way` is `alone`.
        shared: Number of keys at the beginning that share the first vector; 0 if every key has a vector of its own.
    Returns:
        [B, h, 1, K], or [B, h, 2, K] if `way` is `both`.
    """
    if way not in WAYS:
        raise ValueError(f"cpp.single_query: `way` is {way!r}; it must be one of {', '.join(WAYS)}.")
    require_readable("single_query", "k", k, 4)
    require_readable("single_query", "vectors", vectors, 3)
    batch, heads, keys, dim = k.shape
    require_between("single_query", "shared", shared, keys, "the number of keys")
    tables, length = len(vectors), keys - shared + 1 if shared else keys
    require_shape(
        "single_query",
        "vectors",
        vectors,
        (tables, length, dim),
        "in each table, one vector of the width of `k` per key, where all `shared` keys count as one",
    )
    require_tables("single_query", tables, heads)
    from_q = None
    if way != "alone":
        q = require_readable("single_query", "q", q, 4)
        require_shape("single_query", "q", q, (batch, heads, 1, dim), "one query per sample and head")
        q = q.contiguous()
        from_q = pointer("single_query", "q", q)
    elif q is not None:
        raise ValueError("cpp.single_query: `q` must be None if `way` is 'alone'.")
    library = _compiled("single_query", "single_query")
    k = k if k.stride(-1) == 1 else k.contiguous()
    vectors = vectors if vectors.stride()[1:] == (dim, 1) else vectors.contiguous()
    out = k.new_empty(batch, heads, 2 if way == "both" else 1, keys)
    strides = (ctypes.c_int64 * 3)(*k.stride()[:3])
    step = vectors.stride(0) if tables > 1 else 0
    tensors = pointer("single_query", "k", k), strides, from_q, pointer("single_query", "vectors", vectors), step
    sizes = batch, heads, keys, dim, shared
    library.single_query(*tensors, out.data_ptr(), *sizes, WAYS[way], torch.get_num_threads())
    return out


def spread(out: Tensor, of_query: Tensor | None, of_key: Tensor | None, first: int, add: bool) -> None:
    """Write of_query_i[e] + of_key_j[e] into `out` for all pairs (i, j), or one summand if the other tensor is None.

    The index e is j - i + Q - 1 - first, clamped to the range from 0 to E - 1. All tensors must be contiguous.

    Args:
        out: [G, Q, K].
        of_query, of_key: Products of the queries and of the keys with E vectors, [G, Q, E] and [G, K, E].
        first: Index of the distance, from 0 to Q + K - 2, to which the first of the E vectors belongs.
        add: Whether to add the sums to the numbers in `out` instead of replacing these numbers.
    """
    numbers = clipped_numbers("spread", {"out": out}, of_query, of_key, first)
    _clipped("spread", {"out": out, "of_query": of_query, "of_key": of_key}, *numbers, int(add))


def spread_backward(grad: Tensor, of_query: Tensor | None, of_key: Tensor | None, first: int) -> None:
    """Write the gradients of the arguments of `spread` into `of_query` and `of_key`, which must hold zeros.

    Args:
        grad: Gradient of the output of `spread`, [G, Q, K].
        of_query, of_key, first: See `spread`.
    """
    numbers = clipped_numbers("spread_backward", {"grad": grad}, of_query, of_key, first)
    _clipped("spread_backward", {"grad": grad, "of_query": of_query, "of_key": of_key}, *numbers)


def gates(content: Tensor, of_query: Tensor, of_key: Tensor, first: int, offset: float) -> None:
    """Multiply content_ij by (o + of_query_i[e]) (o + of_key_j[e]) in place, where o is `offset`.

    See `spread` for the shapes and the index e.
    """
    numbers = clipped_numbers("gates", {"content": content}, of_query, of_key, first, both=True)
    _clipped("gates", {"content": content, "of_query": of_query, "of_key": of_key}, *numbers, offset)


def gates_backward(
    content: Tensor, grad: Tensor, of_query: Tensor, of_key: Tensor, first: int, offset: float
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `of_query` and `of_key`, and replace `content` by its gradient.

    Args:
        content: The tensor `content` before `gates` changed it, [G, Q, K].
        grad: Gradient of the output of `gates`, [G, Q, K].
        of_query, of_key, first, offset: See `gates`.
    """
    pairs = {"content": content, "grad": grad}
    numbers = clipped_numbers("gates_backward", pairs, of_query, of_key, first, both=True)
    for_query, for_key = torch.zeros_like(of_query), torch.zeros_like(of_key)
    gates = {"of_query": of_query, "of_key": of_key, "for_query": for_query, "for_key": for_key}
    _clipped("gates_backward", {**pairs, **gates}, *numbers, offset)
    return for_query, for_key


def across(pairs: Tensor, window: Tensor, start: int, top: int) -> None:
    """Copy products of some columns, which are ordered by distance, to their places in a tensor of rows and columns.

    `pairs` and `window` must be contiguous.

    Args:
        pairs: [G, R, C]; the products are written from column `start` and row `top` on.
        window: Products ordered by distance, [tables, G / tables, c, W], for c columns and W distances. The
            product of row `top` + i and column `start` + j is entry i - j + c - 1 of column j.
        start: First column to write.
        top: First row to write.
    """
    _across("across", pairs, window, start, top)


def across_backward(pairs: Tensor, window: Tensor, start: int, top: int) -> None:
    """Copy gradients from `pairs` to `window`, in the opposite direction of `across`."""
    _across("across_backward", pairs, window, start, top)


def _across(function: str, pairs: Tensor, window: Tensor, start: int, top: int) -> None:
    """Check both tensors and that `window` lies within `pairs`, and call a function of clipped_products.cpp."""
    for name, tensor, dims in (("pairs", pairs, 3), ("window", window, 4)):
        require_readable(function, name, tensor, dims)
        require_contiguous(function, name, tensor)
    (matrices, rows, columns), (tables, samples, wide, width) = pairs.shape, window.shape
    if not tables or tables * samples != matrices:
        raise ValueError(
            f"cpp.{function}: `window` has {tables} tables of {samples} samples, but `pairs` has {matrices} matrices; "
            "the product of tables and samples must be the number of matrices."
        )
    if not 1 <= wide <= width:
        raise ValueError(
            f"cpp.{function}: `window` has {wide} columns of {width} distances; "
            "it must have one column or more, and no more columns than distances."
        )
    require_between(function, "start", start, columns - wide, f"because `window` has {wide} of {columns} columns")
    high = width - wide + 1
    require_between(function, "top", top, rows - high, f"because `window` has {high} of {rows} rows")
    _clipped(function, {"pairs": pairs, "window": window}, matrices, tables, rows, columns, start, wide, top, width)


def _clipped(function: str, tensors: dict[str, Tensor | None], *numbers: float) -> None:
    """Call a function of clipped_products.cpp with tensors and numbers that were checked before."""
    library = _compiled(function, "clipped_products")
    if not next(iter(tensors.values())).numel():  # type: ignore[union-attr]  # an empty tensor has no pointer
        return
    pointers = [None if tensor is None else pointer(function, name, tensor) for name, tensor in tensors.items()]
    getattr(library, f"clipped_{function}")(*pointers, *numbers, torch.get_num_threads())


def _compiled(function: str, source: str) -> ctypes.CDLL:
    """Return the library of a source, or raise RuntimeError if it could not be compiled."""
    library = _library(source)
    if library is None:
        raise RuntimeError(
            f"cpp.{function}: {source}.cpp could not be compiled on this machine; see the warning in the log, and "
            f"check cpp.works({source!r}) before this call."
        )
    return library


@functools.cache
def _library(source: str) -> ctypes.CDLL | None:
    """Load the library of a C++ source, or log a warning and return None if it cannot be compiled or loaded.

    Also return None if the source file does not exist: the code of an exported model contains no C++.
    """
    path = Path(__file__).with_name(f"{source}.cpp")
    if not path.is_file():
        return None
    try:
        library = shared_library(path)
    except (OSError, subprocess.SubprocessError) as error:
        lines = str(getattr(error, "stderr", None) or error).strip().splitlines()
        reason = lines[0] if lines else error
        logger.warning("%s.cpp could not be compiled or loaded, so %s: %s", source, SOURCES[source], reason)
        return None
    for name, declared in _DECLARED[source].items():
        function = getattr(library, name)
        function.argtypes, function.restype = declared, _SIZE if name == "trilinear_scratch" else None
    return library
