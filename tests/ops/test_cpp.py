"""Test M3's product in C++ for tensors of any layout; without C++, M3 logs a warning and still works.

Every C++ function refuses arguments for which it would leave a tensor's memory, also under `python -O`.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path

import cpp_calls
import pytest
import torch
from support_processes import without_fairseq
from torch import Tensor

from fairseq_posenc.ops import build, cpp, trilinear

#: Queries, keys and D: less than a register, between registers and tiles, one more than these, and the end of a table.
SHAPES = [(1, 1, 1), (2, 70, 8), (70, 2, 8), (33, 33, 5), (64, 64, 64), (65, 129, 3), (131, 47, 20), (17, 200, 65)]


@pytest.fixture
def afresh() -> Iterator[None]:
    """Forget compiled libraries before and after the test."""
    cpp._library.cache_clear()
    yield
    cpp._library.cache_clear()


def random_inputs(queries: int, keys: int, dim: int, tables: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return q and k as projections give them, not contiguous, and the vectors of the distances."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, length, 3, dim, generator=generator).transpose(1, 2) for length in (queries, keys))
    return q, k, torch.randn(tables, queries + keys - 1, dim, generator=generator)


def literally(q: Tensor, k: Tensor, vectors: Tensor) -> Tensor:
    """Return the sums in float64."""
    queries, keys = q.shape[2], k.shape[2]
    entries = torch.arange(keys)[None, :] - torch.arange(queries)[:, None] + queries - 1
    q, k, vectors = q.double(), k.double(), vectors.double()
    return torch.einsum("bhid,bhjd,hijd->bhij", q, k, vectors.expand(q.shape[1], -1, -1)[:, entries])


@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_equal_the_sums(shape: tuple[int, int, int], tables: int) -> None:
    q, k, vectors = random_inputs(*shape, tables)
    expected = literally(q, k, vectors)
    tolerance = 1e-6 * max(1.0, float(expected.abs().max()))
    for actual in (cpp.trilinear(q, k, vectors), cpp.trilinear(q.contiguous(), k.contiguous(), vectors)):
        torch.testing.assert_close(actual.double(), expected, rtol=0, atol=tolerance)


def test_products_accept_any_layout() -> None:
    """Rows may be strided, and all samples may share one tensor."""
    q, k, vectors = random_inputs(40, 50, 8, 1)
    expected = cpp.trilinear(q, k, vectors)
    assert torch.equal(cpp.trilinear(q.mT.contiguous().mT, k, vectors), expected)
    shared = k[:1].expand_as(k)
    assert torch.equal(cpp.trilinear(q, shared, vectors), cpp.trilinear(q, shared.contiguous(), vectors))


@pytest.mark.parametrize("trouble", ["refused", "missing", "not a library"])
def test_where_it_cannot_be_compiled_loops_serve_and_that_is_logged_once(
    trouble: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path, afresh: None
) -> None:
    commands = {
        "refused": "#!/bin/sh\necho 'error: unknown option -march=native' >&2; exit 1\n",
        "not a library": "#!/bin/sh\nfor last; do :; done; [ $last = --version ] || echo nothing > $last\n",
    }
    fake = tmp_path / "c++"
    if trouble in commands:
        fake.write_text(commands[trouble])
        fake.chmod(0o755)
    monkeypatch.setattr(build, "compiler", lambda: str(fake))
    q, k, vectors = random_inputs(33, 50, 8, 1)
    with caplog.at_level(logging.WARNING, logger="fairseq_posenc.ops.cpp"):
        for _ in range(2):
            output = trilinear.TrilinearProduct.apply(q, k, vectors)
    torch.testing.assert_close(output.double(), literally(q, k, vectors), rtol=0, atol=1e-4)
    assert [record.name for record in caplog.records].count("fairseq_posenc.ops.cpp") == 1
    if trouble == "refused":
        assert caplog.messages[0].endswith("error: unknown option -march=native")


@pytest.mark.parametrize("function", cpp_calls.RIGHT)
def test_the_right_calls_that_the_wrong_ones_start_from_succeed(function: str) -> None:
    getattr(cpp, function)(**cpp_calls.right(function))


@pytest.mark.parametrize("call", cpp_calls.wrong_calls(), ids=str)
def test_a_wrong_call_raises_and_names_the_function(call: cpp_calls.Call) -> None:
    with pytest.raises(call.error, match=rf"^cpp\.{call.function}: "):
        call()


def test_wrong_calls_raise_without_asserts() -> None:
    """`python -O` removes asserts, so the checks must not be asserts."""
    code = "import runpy; runpy.run_path(sys.argv[1], run_name='__main__')"
    command = without_fairseq(code, cpp_calls.__file__, flags=("-O",))
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    last_lines = "\n".join(finished.stdout.splitlines()[-2:])
    assert finished.returncode == 0, f"ended by {finished.returncode}: {last_lines}\n{finished.stderr[-2000:]}"
    assert f"{len(cpp_calls.wrong_calls())} wrong calls, asserts off, let through: []" in last_lines


@pytest.mark.parametrize("function", cpp_calls.RIGHT)
def test_a_call_without_a_compiler_raises_and_says_what_to_ask(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp, "_library", lambda source: None)
    with pytest.raises(RuntimeError, match=rf"cpp\.{function}: .* could not be compiled .* cpp\.works\("):
        getattr(cpp, function)(**cpp_calls.right(function))


@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("shape", [(0, 5, 8), (4, 0, 8), (4, 5, 0), (0, 1, 8), (1, 0, 8)], ids=str)
def test_calls_without_numbers_end(batch: int, shape: tuple[int, int, int]) -> None:
    """No samples, no queries, no keys or no width: the results are empty or zeros."""
    queries, keys, dim = shape
    q, k = torch.randn(batch, 3, queries, dim), torch.randn(batch, 3, keys, dim)
    output = cpp.trilinear(q, k, torch.randn(1, queries + keys - 1, dim))
    assert output.shape == (batch, 3, queries, keys)
    assert not output.any() or dim
    sums = cpp.single_query("both", k, torch.randn(1, keys, dim), torch.randn(batch, 3, 1, dim), 0)
    assert sums.shape == (batch, 3, 2, keys)
    assert not sums.any() or dim
    pairs, of_query, of_key = (torch.randn(3 * batch, *sizes) for sizes in ((queries, keys), (queries, 4), (keys, 4)))
    cpp.spread(pairs, of_query, of_key, 0, add=True)
    cpp.gates(pairs, of_query, of_key, 0, 0.5)
    cpp.spread_backward(pairs, of_query, of_key, 0)
    cpp.gates_backward(pairs, pairs.clone(), of_query, of_key, 0, 0.5)
    for pair in ((of_query, None), (None, of_key)):  # an empty tensor has no pointer
        cpp.spread(pairs, *pair, 0, add=False)
        cpp.spread_backward(pairs, *pair, 0)


def test_the_first_line_of_the_compiler_is_the_reason(
    afresh: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The lines that follow show the source."""

    def fail(path: Path) -> None:
        raise subprocess.CalledProcessError(1, "g++", stderr="fatal error: no space\n  12 | int x;\n")

    monkeypatch.setattr(cpp, "shared_library", fail)
    with caplog.at_level(logging.WARNING, logger="fairseq_posenc.ops.cpp"):
        assert not cpp.works("trilinear")
    (record,) = caplog.records
    assert record.message.endswith(": fatal error: no space")
