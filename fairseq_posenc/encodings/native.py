"""Passes over all pairs that are ours in C++, compiled once a process where a compiler is there.

M3's product of three vectors (triple.cpp) takes two thirds of a compiled loop's time: torch.compile sums one pair after
another, and moves and adds more than it multiplies; the two multiplications a number, twice those of a matrix product,
are nearly all that this does. M4M's gates (gates.cpp) are read where they are near, a few for each query, where torch
would write them out for all pairs before it multiplies.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from .compiled import compiler

logger = logging.getLogger(__name__)

#: source -> what it makes, for who has no compiler
SOURCES = {"triple": "M3's products are made by compiled loops", "gates": "M4M's gates are written out for all pairs"}
#: no -ffast-math: with it some compilers make the whole process flush denormal numbers
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fopenmp", "-shared", "-fPIC")
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_int64


def works(source: str) -> bool:
    """Whether `triple` or `gates` can be compiled here; tried once, and said once if not."""
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


def gates(content: Tensor, of_query: Tensor, of_key: Tensor, first: int, offset: float) -> None:
    """content_ij (o + of_query_i[e]) (o + of_key_j[e]) in place of the content, float32 on a CPU. No gradients.

    Args:
        content: [G, Q, K]. of_query, of_key: [G, Q, E] and [G, K, E], e = j - i + Q - 1 - first, from 0 to E - 1 where
            it is beyond. All contiguous.
    """
    _run("gates", [content, of_query, of_key], [content, of_query, of_key], first, offset)


def gates_backward(
    content: Tensor, grad: Tensor, of_query: Tensor, of_key: Tensor, first: int, offset: float
) -> tuple[Tensor, Tensor]:
    """The gradients of both gates, and in place of the content its own; `grad` is that of what `gates` makes."""
    made = torch.zeros_like(of_query), torch.zeros_like(of_key)
    _run("gates_backward", [content, grad, of_query, of_key, *made], [content, of_query, of_key], first, offset)
    return made


def _run(name: str, tensors: list[Tensor], sizes: list[Tensor], first: int, offset: float) -> None:
    library = _library("gates")
    assert library is not None
    content, of_query, of_key = sizes
    (matrices, queries, keys), vectors = content.shape, of_query.shape[-1]
    fit = of_query.shape == (matrices, queries, vectors) and of_key.shape == (matrices, keys, vectors)
    assert fit, "read without a look at their sizes"
    assert all(x.is_contiguous() and x.dtype == torch.float32 for x in tensors)
    pointers = [x.data_ptr() for x in tensors]
    getattr(library, name)(*pointers, matrices, queries, keys, first, vectors, offset, torch.get_num_threads())


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
    (_declare_triple if source == "triple" else _declare_gates)(library)
    return library


def _declare_triple(library: ctypes.CDLL) -> None:
    library.triple.argtypes = [_POINTER] * 7 + [_SIZE] * 6 + [ctypes.c_int]
    library.triple.restype = None
    library.triple_scratch.argtypes, library.triple_scratch.restype = [_SIZE] * 5, _SIZE


def _declare_gates(library: ctypes.CDLL) -> None:
    for function, tensors in ((library.gates, 3), (library.gates_backward, 6)):
        function.argtypes = [_POINTER] * tensors + [_SIZE] * 5 + [ctypes.c_float, ctypes.c_int]
        function.restype = None
