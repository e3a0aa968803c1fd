"""Test that compiled loops give the sums over all pairs, and that work goes on without a compiler."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

from fairseq_posenc.ops import compiled, shifting, single_query, toeplitz, trilinear, windows
from fairseq_posenc.ops.content import Content
from fairseq_posenc.positions import Positions

pytestmark = pytest.mark.usefixtures("_new_memory_is_nan")


@pytest.fixture
def _no_loops() -> Iterator[None]:
    """Forget all compiled loops and whether the compiler works, before and after a test."""

    def forget() -> None:
        compiled.compiled.cache_clear()
        compiled._compiler_works.cache_clear()
        torch._dynamo.reset()

    forget()
    yield
    forget()


# -- M3's product of three vectors


@pytest.mark.parametrize(("queries", "keys", "tables"), [(70, 70, 1), (33, 50, 3)])
def test_compiled_loops_over_pairs_equal_the_sums(
    queries: int, keys: int, tables: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trilinear, "LEAST", 1)
    torch.manual_seed(0)
    shapes = [(2, 3, queries, 8), (2, 3, keys, 8), (tables, queries + keys - 1, 8)]
    q, k, vectors = inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    distances = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
    slow = torch.einsum("bhid,bhjd,hijd->bhij", q, k, vectors.expand(3, -1, -1)[:, distances + queries - 1])
    weight = torch.randn_like(slow)
    outputs = [(x, *torch.autograd.grad((x * weight).sum(), inputs)) for x in (trilinear.product(*inputs), slow)]
    torch.testing.assert_close(*outputs, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("_no_loops")
def test_lengths_share_their_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of any lengths and sizes: beyond a few versions of a loop torch would give up, or take all memory."""
    monkeypatch.setattr(trilinear, "LEAST", 1)
    monkeypatch.setattr(compiled, "_LIMIT", {"recompile_limit": 2} if compiled._LIMIT else {})
    for batch, length in ((3, 10), (4, 13), (7, 33), (5, 40)):
        shapes = [(batch, 2, length, 8), (batch, 2, length, 8), (1, 2 * length - 1, 8)]
        inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
        torch.autograd.grad(trilinear.product(*inputs).sum(), inputs)


def test_second_derivatives_are_refused() -> None:
    """The loops compute first derivatives only."""
    q, k, vectors = (torch.randn(*shape).requires_grad_() for shape in ((1, 2, 40, 8), (1, 2, 40, 8), (1, 79, 8)))
    (gradient,) = torch.autograd.grad(trilinear.product(q, k, vectors).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="twice"):
        gradient.sum().backward()


# -- the products of all keys in a decoding step


def inputs(tables: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Return keys that are a part of a cache's buffer, vectors that are a part of a table, and a query."""
    torch.manual_seed(0)
    k, a = torch.randn(2, 3, 40, 16)[:, :, :37], torch.randn(tables, 41, 16)[:, 2:39]
    return k, a, torch.randn(2, 3, 1, 16)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("tables", [1, 3])
def test_loops_over_keys_equal_the_sums(tables: int, loops: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    k, a, q = inputs(tables)
    monkeypatch.setattr(single_query, "LEAST", 1 if loops else 1 << 60)
    of_query, of_key = (torch.einsum("bhjd,bhjd->bhj", k, x.expand_as(k)).unsqueeze(2) for x in (q, a))
    product = torch.einsum("bhjd,bhid,hjd->bhij", k, q, a.expand(3, -1, -1))
    with torch.no_grad():
        assert single_query.in_one_loop(k) is loops
        both = single_query.of_query_and_of_keys(k, a, q)
        others = single_query.of_keys(k, a), single_query.of_keys_and_query(k, a, q), single_query.of_all_three(k, a, q)
    slow = of_query, of_key, of_key, of_query + of_key, product
    torch.testing.assert_close((*both, *others), slow, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("same", [True, False], ids=["the same keys", "other keys"])
def test_the_content_of_the_same_keys_is_taken(same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content of projected keys, as with RoPE, is left to the attention."""
    monkeypatch.setattr(single_query, "LEAST", 1)
    k, a, q = inputs()
    content = Content(q, k if same else k.clone(), 0.7)
    with torch.no_grad():
        total = toeplitz.key_product(k, a, Positions(1, 37, k.device), slice(0, 37), content)
        slow = (k * a).sum(-1).unsqueeze(2) + (content.product() if same else 0)
    assert content.taken is same
    torch.testing.assert_close(total, slow, rtol=1e-4, atol=1e-4)


# -- where loops are compiled


@pytest.mark.usefixtures("_no_loops")
@pytest.mark.parametrize(
    ("module", "name", "replacement", "reason"),
    [
        (shutil, "which", lambda name: None, "there is no C++ compiler"),
        (torch, "compile", lambda kernel, **options: kernel, "torch.compile is switched off"),
    ],
)
def test_without_a_compiler_the_other_way_is_taken_and_logged_once(
    module: Any,
    name: str,
    replacement: Callable[..., Any],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The formula itself would make a tensor with a vector for every pair."""
    monkeypatch.setattr(module, name, replacement)
    with caplog.at_level(logging.WARNING, logger="fairseq_posenc.ops.compiled"):
        for _ in range(2):
            assert not compiled.usable(1, 1, torch.device("cpu"))
    assert [record.message.count(reason) for record in caplog.records] == [1]


@torch.no_grad()
def test_no_loop_runs_where_torch_must_see_the_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a compiled loop, a traced graph would be incomplete, forward gradients would be lost, and vmap would fail."""
    monkeypatch.setattr(single_query, "LEAST", 1)
    x, (k, *_), answers = torch.ones(2, 2), inputs(), []

    def ask(x: Tensor) -> Tensor:
        answers.append(single_query.in_one_loop(k))
        return x + 1

    ask(x)
    with FlopCounterMode(display=False):
        ask(x)
    with forward_ad.dual_level():
        ask(x)
    torch.vmap(ask)(x)
    torch.jit.trace(ask, x, check_trace=False)
    assert answers == [True, False, False, False, False]


@pytest.mark.parametrize(("versions", "limit"), [({"recompile_limit": 64}, 8), ({}, 256)])
def test_only_an_older_torch_changes_the_limit_of_the_process(
    versions: dict[str, int], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_LIMIT", versions)
    with torch._dynamo.config.patch(cache_size_limit=8):
        compiled.compiled.__wrapped__(trilinear._products)
        assert torch._dynamo.config.cache_size_limit == limit


def test_own_gradients_are_used_by_torch_compile_and_not_by_torch_export() -> None:
    """In code that torch.compile of torch 2.11 traces, torch.compiler.is_exporting() is always true."""
    torch._dynamo.reset()

    class Module(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1 if compiled.own_gradients() else x - 1

    assert torch.compile(Module(), backend="eager", fullgraph=True)(torch.zeros(1)) == 1
    assert torch.export.export(Module(), (torch.zeros(1),)).module()(torch.zeros(1)) == -1


def test_compiled_code_multiplies_fast_and_stores_no_more_than_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows become a multiple of eight numbers, and windows of vectors are read only for many tokens."""
    assert shifting.padded(torch.ones(1, 13, 4), -2).shape == (1, 13, 4)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert shifting.padded(torch.ones(1, 13, 4), -2).shape == (1, 16, 4)
    assert shifting.padded(torch.ones(1, 16), -1).shape == (1, 16)
    assert windows.usable(torch.ones(4, 2, 5, 8), torch.ones(1, 11, 8))
    assert not windows.usable(torch.ones(1, 2, 5, 8), torch.ones(1, 11, 8))
