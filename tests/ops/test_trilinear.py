"""Test that M3's compiled loops give the sums over all pairs; without a compiler, M3 logs a warning and still works."""

from __future__ import annotations

import logging

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from fairseq_posenc.ops import compiled, trilinear


def check_sums(queries: int, keys: int, tables: int) -> None:
    """Compare the products and their gradients with the sums over all pairs."""
    torch.manual_seed(0)
    shapes = [(2, 3, queries, 8), (2, 3, keys, 8), (tables, queries + keys - 1, 8)]
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    q, k, vectors = inputs
    distances = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
    literal = torch.einsum("bhid,bhjd,hijd->bhij", q, k, vectors.expand(3, -1, -1)[:, distances + queries - 1])
    actual = trilinear.product(*inputs)
    torch.testing.assert_close(actual, literal, rtol=1e-11, atol=1e-11)
    weight = torch.randn_like(literal)
    ours, theirs = (torch.autograd.grad((x * weight).sum(), inputs) for x in (actual, literal))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("queries", "keys", "tables"), [(70, 70, 1), (33, 50, 3)])
def test_compiled_loops_equal_the_sums(queries: int, keys: int, tables: int) -> None:
    check_sums(queries, keys, tables)


@pytest.mark.parametrize(("queries", "keys", "tables"), [(1, 1, 1), (1, 5, 3), (6, 1, 1), (7, 4, 3), (33, 5, 3)])
def test_the_formulas_of_the_loops_equal_the_sums(
    queries: int, keys: int, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trilinear, "compiled", lambda formula: formula)
    check_sums(queries, keys, tables)


def test_without_a_compiler_the_other_way_is_taken_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compiled.shutil, "which", lambda name: None)
    compiled._compiler_works.cache_clear()
    with caplog.at_level(logging.WARNING, logger="fairseq_posenc.ops.compiled"):
        assert not compiled.usable(1, 1, torch.device("cpu"))
        assert not compiled.usable(1, 1, torch.device("cpu"))
    compiled._compiler_works.cache_clear()
    assert [record.message.count("there is no C++ compiler") for record in caplog.records] == [1]


def test_lengths_share_their_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of any lengths and sizes: beyond a few versions of a loop torch would give up, or take all memory."""
    monkeypatch.setattr(compiled, "_LIMIT", {"recompile_limit": 4} if compiled._LIMIT else {})
    compiled.compiled.cache_clear()
    torch._dynamo.reset()
    try:
        for batch, length in ((3, 10), (1, 9), (4, 4), (2, 33), (5, 40), (8, 8), (7, 65)):
            shapes = [(batch, 2, length, 8), (batch, 2, length, 8), (1, 2 * length - 1, 8)]
            inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
            torch.autograd.grad(trilinear.product(*inputs).sum(), inputs)
    finally:
        compiled.compiled.cache_clear()
        torch._dynamo.reset()


def test_torch_compile_that_does_nothing_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """With TORCHDYNAMO_DISABLE=1, the formula itself would make a tensor with a vector for every pair."""
    monkeypatch.setattr(compiled.torch, "compile", lambda kernel, **options: kernel)
    compiled.compiled.cache_clear()
    compiled._compiler_works.cache_clear()
    try:
        assert not compiled.usable(1, 1, torch.device("cpu"))
    finally:
        compiled.compiled.cache_clear()
        compiled._compiler_works.cache_clear()


def test_nothing_is_compiled_under_a_dispatch_mode() -> None:
    q = torch.randn(2, 2, 40, 32)
    with FlopCounterMode(display=False):
        assert not compiled.usable(10**9, 1, q.device)
    assert compiled.usable(10**9, 1, q.device)


@pytest.mark.parametrize(("versions", "limit"), [({"recompile_limit": 64}, 8), ({}, 256)])
def test_only_an_older_torch_changes_the_limit_of_the_process(
    versions: dict[str, int], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_LIMIT", versions)
    with torch._dynamo.config.patch(cache_size_limit=8):
        compiled.compiled.__wrapped__(trilinear._products)
        assert torch._dynamo.config.cache_size_limit == limit


def test_second_derivatives_are_refused() -> None:
    """The loops compute first derivatives only."""
    q, k, vectors = (torch.randn(*shape).requires_grad_() for shape in ((1, 2, 40, 8), (1, 2, 40, 8), (1, 79, 8)))
    (gradient,) = torch.autograd.grad(trilinear.product(q, k, vectors).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="twice"):
        gradient.sum().backward()
