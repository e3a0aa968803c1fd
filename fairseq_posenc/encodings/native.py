"""M3's product of three vectors in C++ (triple.cpp), compiled once a process: two thirds of a compiled loop's time.

torch.compile sums one pair after another, and moves and adds more than it multiplies; the two multiplications a
number, twice those of a matrix product, are nearly all that this does.
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

SOURCE = Path(__file__).with_name("triple.cpp")
#: no -ffast-math: with it some compilers make the whole process flush denormal numbers
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fopenmp", "-shared", "-fPIC")


def works() -> bool:
    """Whether `products` can be made here; tried once, and said once if not."""
    return _library() is not None


def products(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    """sum_d q_id k_jd a_ijd, float32 on a CPU: see `fused.products`. No gradients; vectors contiguous."""
    library = _library()
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


@functools.cache
def _library() -> ctypes.CDLL | None:
    """In a folder of this process, gone once it is loaded: it takes half a second, and no machine reads another's."""
    try:
        with tempfile.TemporaryDirectory(prefix="fairseq_posenc-") as folder:
            path = f"{folder}/triple.so"
            command = [compiler(), *FLAGS, str(SOURCE), "-o", path]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
            library = ctypes.CDLL(path)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()
        logger.warning("M3's products are made by compiled loops, which is slower: %s", said[0] if said else error)
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    library.triple.argtypes = [pointer] * 7 + [size] * 6 + [ctypes.c_int]
    library.triple.restype = None
    library.triple_scratch.argtypes, library.triple_scratch.restype = [size] * 5, size
    return library
