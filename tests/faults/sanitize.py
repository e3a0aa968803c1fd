"""Call the C++ functions with random sizes under AddressSanitizer and UndefinedBehaviorSanitizer (`make sanitize`).

The sizes include 0 and 1, the tensors include views with strides of their own, and NaN and infinity, and 1 to 4 threads
compute. Two threads of Python also make these calls at the same time, and must compute what one thread computes. The
wrong calls of tests/ops/cpp_calls.py are made with and without `python -O`. A planted overrun shows that the sanitizer
works. The first error ends the process, so the calls behind it are not made and count as calls that did not survive.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from fairseq_posenc.ops import build, cpp
from tests.faults import table
from tests.ops import cpp_calls

FLAGS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
FLAGS += ("-march=native", "-ffp-contract=fast", "-fopenmp", "-shared", "-fPIC")
OVERRUN, WRONG, TOGETHER = "overrun", "wrong", "together"
TRIALS = 400  # of each function
SPECIAL = (float("nan"), float("inf"), float("-inf"))
#: A function and its arguments, among them the tensors that it changes.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


def sizes(generator: random.Random, number: int) -> list[int]:
    """Return sizes around the widths of vectors (8 and 16) and of tiles, or small ones."""
    return [generator.choice([0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65]) for _ in range(number)]


def numbers(generator: random.Random, *shape: int) -> torch.Tensor:
    """Return a tensor of random numbers. In one tensor of four, some of them are NaN or infinite."""
    values = torch.randn(*shape)
    if generator.randrange(4) == 0:
        chosen = torch.rand(*shape) < 0.1
        values[chosen] = torch.tensor(SPECIAL)[torch.randint(len(SPECIAL), (int(chosen.sum()),))]
    return values


def tensor(generator: random.Random, *shape: int) -> torch.Tensor:
    """Return a tensor that is contiguous, a view of a wider one, or transposed in memory."""
    kind = generator.randrange(3)
    if kind == 1:
        return numbers(generator, *shape[:-1], shape[-1] + 3)[..., 1:-2]
    if kind == 2:
        return numbers(generator, *shape[:-2], shape[-1], shape[-2]).mT
    return numbers(generator, *shape)


def products(generator: random.Random) -> list[Call]:
    queries, keys, dim = sizes(generator, 3)
    batch, heads = generator.randrange(3), generator.randint(1, 3)
    vectors = numbers(generator, generator.choice([1, heads]), max(queries + keys - 1, 0), dim)
    q, k = tensor(generator, batch, heads, queries, dim), tensor(generator, batch, heads, keys, dim)
    return [(cpp.trilinear, (q, k, vectors))]


def single_query(generator: random.Random) -> list[Call]:
    keys, dim = sizes(generator, 2)
    batch, heads, way = generator.randrange(3), generator.randint(1, 3), generator.choice([*cpp.WAYS])
    shared = generator.randint(0, keys)
    length = keys - shared + 1 if shared else keys
    vectors = tensor(generator, generator.choice([1, heads]), length, dim)
    q = None if way == "alone" else tensor(generator, batch, heads, 1, dim)
    return [(cpp.single_query, (way, tensor(generator, batch, heads, keys, dim), vectors, q, shared))]


def clipped(generator: random.Random) -> list[Call]:
    """Return calls of the functions for clipped distances, forward and backward."""
    queries, keys = sizes(generator, 2)
    matrices, vectors = generator.randrange(4), generator.randint(1, 20)
    first = generator.randint(0, max(queries + keys - 2, 0))
    pairs, grad = numbers(generator, 2, matrices, queries, keys)
    of_query, of_key = numbers(generator, matrices, queries, vectors), numbers(generator, matrices, keys, vectors)
    one, other = generator.choice([(of_query, of_key), (None, of_key), (of_query, None)])
    return [
        (cpp.spread, (pairs, one, other, first, generator.random() < 0.5)),
        (cpp.gates, (pairs, of_query, of_key, first, 0.5)),
        (cpp.gates_backward, (pairs, grad, of_query, of_key, first, 0.5)),
        (cpp.spread_backward, (grad, one, other, first)),
    ]


def across(generator: random.Random) -> list[Call]:
    """Return calls that copy random windows to their places in the pairs, and back."""
    tables, samples, wide = generator.randint(1, 3), generator.randint(1, 3), generator.randint(1, 20)
    width = wide + generator.randrange(20)
    start, top = generator.randrange(4), generator.randrange(4)
    rows, columns = top + width - wide + 1 + generator.randrange(3), start + wide + generator.randrange(3)
    pairs, window = (
        numbers(generator, tables * samples, rows, columns),
        numbers(generator, tables, samples, wide, width),
    )
    return [(cpp.across, (pairs, window, start, top)), (cpp.across_backward, (pairs, window, start, top))]


CALLS: dict[str, Callable[[random.Random], list[Call]]] = {
    "products": products, "single_query": single_query, "clipped": clipped, "across": across,
}  # fmt: skip


def random_call(function: str, generator: random.Random) -> None:
    torch.set_num_threads(generator.randint(1, 4))
    for called, arguments in CALLS[function](generator):
        called(*arguments)


def together(generator: random.Random) -> None:
    """Make calls of all functions in two threads of Python, and compare the results with those of one thread."""
    torch.set_num_threads(2)
    drawn = [call for draw in CALLS.values() for call in draw(generator)]
    expected = [results(call) for call in drawn]
    with ThreadPoolExecutor(2) as pool:
        computed = list(pool.map(results, drawn * 2))
    for one, other in zip(expected * 2, computed, strict=True):
        if not all(map(functools.partial(torch.allclose, equal_nan=True), one, other)):
            raise AssertionError("a call in two threads computes something else than in one thread")


def results(call: Call) -> list[torch.Tensor]:
    """Make a call with copies of its arguments; return all tensors, because some functions change their arguments."""
    function, arguments = copy.deepcopy(call)
    result = function(*arguments)
    every = [*(result if isinstance(result, tuple) else (result,)), *arguments]
    return [value for value in every if isinstance(value, torch.Tensor)]


def wrong_call(call: Callable[[], object]) -> None:
    """Make a call that must raise an error."""
    try:
        call()
    except (TypeError, ValueError):
        return
    raise AssertionError(f"{call} was let through")


def calls(function: str, seed: int) -> list[Callable[[], None]]:
    """Return the calls of a function, of two threads, or of the planted overrun, or those that must raise an error."""
    if function == OVERRUN:
        return [overrun]
    if function == WRONG:
        return [functools.partial(wrong_call, call) for call in cpp_calls.wrong_calls()]
    generator = random.Random(seed)
    if function == TOGETHER:
        return [functools.partial(together, generator)] * (TRIALS // 4)
    return [functools.partial(random_call, function, generator)] * TRIALS


def overrun() -> None:
    """Let C++ write 20 numbers into a buffer of 19, as a call with a wrong size would."""
    library = build.shared_library(Path(cpp.__file__).with_name("clipped_products.cpp"))
    out, of_query, of_key = torch.empty(19), torch.randn(1, 4, 3), torch.randn(1, 5, 3)
    pointers = [ctypes.c_void_p(x.data_ptr()) for x in (out, of_query, of_key)]
    library.clipped_spread(*pointers, *map(ctypes.c_int64, (1, 4, 5, 2, 3)), 0, 1)


def child(function: str, seed: int) -> None:
    """Make the calls of a function in this process, in which the sanitizers are loaded, and print a dot for each."""
    build.FLAGS = FLAGS
    for call in calls(function, seed):
        call()
        print(".", end="", flush=True)


def run(function: str, cache: str, *python_options: str, seed: int = 0) -> subprocess.CompletedProcess[str]:
    """Make the calls of a function in a process with the sanitizers."""
    find = ["g++", "-print-file-name=libasan.so"]
    preloaded = subprocess.run(find, check=True, capture_output=True, text=True).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": preloaded,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself leaves memory allocated
        build.VARIABLE: cache,
        "PYTHONPATH": str(table.ROOT),
    }
    command = [sys.executable, *python_options, "-m", "tests.faults.sanitize", function, str(seed)]
    return subprocess.run(command, env=environment, cwd=table.ROOT, capture_output=True, text=True, check=False)


#: Arguments of `run` for each fault: a function and options of Python.
FAULTS = {f"C++: random calls of {function}": (function,) for function in CALLS} | {
    "C++: random calls in two threads of Python": (TOGETHER,),
    "C++: wrong calls": (WRONG,),
    "C++: wrong calls with python -O": (WRONG, "-O"),
}


def main() -> int:
    """Make all calls that no earlier run has made, and return 1 if a sanitizer found an error."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as cache:
        planted = run(OVERRUN, cache)
        if planted.returncode == 0 or "heap-buffer-overflow" not in planted.stderr:
            print(f"the sanitizer does not find a planted overrun:\n{planted.stderr[-2000:]}", file=sys.stderr)
            return 1
        for fault, (function, *options) in FAULTS.items():
            if table.done(fault):
                continue
            ended = run(function, cache, *options)
            if ended.returncode:
                print(ended.stderr[-4000:], file=sys.stderr)
            table.record(fault, len(calls(function, 0)), ended.stdout.count("."))
    return table.show(FAULTS, started)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(sys.argv[1], int(sys.argv[2]))
    else:
        sys.exit(main())
