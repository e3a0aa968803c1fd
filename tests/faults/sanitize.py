"""Call the C++ functions with random sizes under AddressSanitizer and UndefinedBehaviorSanitizer (`make sanitize`).

The sizes include 0 and 1, the tensors include views with strides of their own, and 1 to 4 threads compute. The wrong
calls of tests/ops/cpp_calls.py are made, too. A planted overrun shows that the sanitizer works. The first error ends
the process, so the calls behind it are not made and count as calls that did not survive.
"""

from __future__ import annotations

import ctypes
import functools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from fairseq_posenc.ops import build, cpp
from tests.faults import table
from tests.ops import cpp_calls

FLAGS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
FLAGS += ("-march=native", "-ffp-contract=fast", "-fopenmp", "-shared", "-fPIC")
OVERRUN, WRONG = "overrun", "wrong"
TRIALS = 400  # of each function


def sizes(generator: random.Random, number: int) -> list[int]:
    """Return sizes around the widths of vectors (8 and 16) and of tiles, or small ones."""
    return [generator.choice([0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65]) for _ in range(number)]


def tensor(generator: random.Random, *shape: int) -> torch.Tensor:
    """Return a tensor that is contiguous, a view of a wider one, or transposed in memory."""
    kind = generator.randrange(3)
    if kind == 1:
        return torch.randn(*shape[:-1], shape[-1] + 3)[..., 1:-2]
    if kind == 2:
        return torch.randn(*shape[:-2], shape[-1], shape[-2]).mT
    return torch.randn(*shape)


def products(generator: random.Random) -> None:
    queries, keys, dim = sizes(generator, 3)
    batch, heads = generator.randrange(3), generator.randint(1, 3)
    vectors = torch.randn(generator.choice([1, heads]), max(queries + keys - 1, 0), dim)
    cpp.products(tensor(generator, batch, heads, queries, dim), tensor(generator, batch, heads, keys, dim), vectors)


def single_query(generator: random.Random) -> None:
    keys, dim = sizes(generator, 2)
    batch, heads, way = generator.randrange(3), generator.randint(1, 3), generator.choice([*cpp.WAYS])
    shared = generator.randint(0, keys)
    length = keys - shared + 1 if shared else keys
    vectors = tensor(generator, generator.choice([1, heads]), length, dim)
    q = None if way == "alone" else tensor(generator, batch, heads, 1, dim)
    cpp.single_query(way, tensor(generator, batch, heads, keys, dim), vectors, q, shared)


def clipped(generator: random.Random) -> None:
    """Call the functions for clipped distances, forward and backward."""
    queries, keys = sizes(generator, 2)
    matrices, vectors = generator.randrange(4), generator.randint(1, 20)
    first = generator.randint(0, max(queries + keys - 2, 0))
    pairs, grad = torch.randn(2, matrices, queries, keys)
    of_query, of_key = torch.randn(matrices, queries, vectors), torch.randn(matrices, keys, vectors)
    one, other = generator.choice([(of_query, of_key), (None, of_key), (of_query, None)])
    cpp.spread(pairs, one, other, first, generator.random() < 0.5)
    cpp.gates(pairs, of_query, of_key, first, 0.5)
    cpp.gates_backward(pairs, grad, of_query, of_key, first, 0.5)
    cpp.spread_backward(grad, one, other, first)


def across(generator: random.Random) -> None:
    """Copy random windows to their places in the pairs, and back."""
    tables, samples, wide = generator.randint(1, 3), generator.randint(1, 3), generator.randint(1, 20)
    width = wide + generator.randrange(20)
    start, top = generator.randrange(4), generator.randrange(4)
    rows, columns = top + width - wide + 1 + generator.randrange(3), start + wide + generator.randrange(3)
    pairs, window = torch.randn(tables * samples, rows, columns), torch.randn(tables, samples, wide, width)
    cpp.across(pairs, window, start, top)
    cpp.across_backward(pairs, window, start, top)


CALLS: dict[str, Callable[[random.Random], None]] = {
    "products": products, "single_query": single_query, "clipped": clipped, "across": across,
}  # fmt: skip


def random_call(function: str, generator: random.Random) -> None:
    torch.set_num_threads(generator.randint(1, 4))
    CALLS[function](generator)


def wrong_call(call: Callable[[], object]) -> None:
    """Make a call that must raise an error."""
    try:
        call()
    except (TypeError, ValueError):
        return
    raise AssertionError(f"{call} was let through")


def calls(function: str, seed: int) -> list[Callable[[], None]]:
    """Return the calls of a function, or of the planted overrun, or those that must raise an error."""
    if function == OVERRUN:
        return [overrun]
    if function == WRONG:
        return [functools.partial(wrong_call, call) for call in cpp_calls.wrong_calls()]
    return [functools.partial(random_call, function, random.Random(seed))] * TRIALS


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


def run(function: str, cache: str, seed: int = 0) -> subprocess.CompletedProcess[str]:
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
    command = [sys.executable, "-m", "tests.faults.sanitize", function, str(seed)]
    return subprocess.run(command, env=environment, cwd=table.ROOT, capture_output=True, text=True, check=False)


def main() -> int:
    """Make all calls that no earlier run has made, and return 1 if a sanitizer found an error."""
    started = time.monotonic()
    faults = {f"C++: random calls of {function}": function for function in CALLS} | {"C++: wrong calls": WRONG}
    with tempfile.TemporaryDirectory() as cache:
        planted = run(OVERRUN, cache)
        if planted.returncode == 0 or "heap-buffer-overflow" not in planted.stderr:
            print(f"the sanitizer does not find a planted overrun:\n{planted.stderr[-2000:]}", file=sys.stderr)
            return 1
        for fault, function in faults.items():
            if table.done(fault):
                continue
            ended = run(function, cache)
            if ended.returncode:
                print(ended.stderr[-4000:], file=sys.stderr)
            table.record(fault, len(calls(function, 0)), ended.stdout.count("."))
    return table.show(faults, started)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(sys.argv[1], int(sys.argv[2]))
    else:
        sys.exit(main())
