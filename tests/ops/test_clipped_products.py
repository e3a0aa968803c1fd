"""Test that the C++ functions for distances that share a vector give the same as the formulas and as `Blocked`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from fairseq_posenc.core import tables
from fairseq_posenc.encodings import StackShape
from fairseq_posenc.ops import blocked_products, build, compiled, cpp, toeplitz
from fairseq_posenc.ops.clipped_products import Clipped
from fairseq_posenc.ops.pair_products import GatedProduct, SumOfProducts
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

#: Queries, keys and clip: few rows, distances that no query has, memory, and rows longer than a register.
SHAPES = [(2, 3, 0), (4, 5, 1), (20, 20, 3), (20, 20, 9), (12, 40, 5), (40, 45, 19), (70, 131, 17), (33, 33, 0)]


def random_inputs(queries: int, keys: int, clip: int, tables: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """Return q, k and one vector per distance."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, length, 8, generator=generator) for length in (queries, keys))
    return q, k, torch.randn(tables, 2 * clip + 1, 8, generator=generator)


def rows(queries: int, keys: int, clip: int) -> Tensor:
    """Return the row of each distance, in the order of the table."""
    return (torch.arange(queries + keys - 1) - keys + 1).clamp(-clip, clip) + clip


def literally(q: Tensor, k: Tensor, table: Tensor, clip: int, offset: float) -> Tensor:
    """Compute the products literally in float64."""
    queries, keys = q.shape[2], k.shape[2]
    a = table.expand(q.shape[1], -1, -1)[:, pairs(queries, keys, clip)]
    of_query = torch.einsum("bhid,hijd->bhij", q, a) + offset
    of_key = torch.einsum("bhjd,hijd->bhij", k, a) + offset
    return torch.einsum("bhid,bhjd->bhij", q, k) * of_query * of_key / q.shape[-1] ** 0.5


def pairs(queries: int, keys: int, clip: int) -> Tensor:
    """Return the row of each pair; the queries are the last columns."""
    distances = torch.arange(keys)[None, :] - torch.arange(keys - queries, keys)[:, None]
    return distances.clamp(-clip, clip) + clip


def assert_near(actual: list[Tensor], wanted: list[Tensor]) -> None:
    for one, other in zip(actual, wanted, strict=True):
        size = max(1.0, float(other.detach().abs().max()))
        torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-6 * size)


def with_gradients(output: Tensor, *inputs: Tensor) -> list[Tensor]:
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output.dtype)
    return [output, *torch.autograd.grad(output, inputs, weights)]


@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gated_products_equal_the_formula(shape: tuple[int, int, int], tables: int, offset: float) -> None:
    """Outputs and gradients are compared."""
    queries, keys, clip = shape
    single = [x.requires_grad_() for x in random_inputs(*shape, tables)]
    double = [x.detach().double().requires_grad_() for x in single]
    q, k, table = single
    kernel = Clipped(keys - 1 - clip, keys - 1 + clip)
    by_distance = table[:, rows(*shape)]
    assert kernel.serves(queries, k, q, by_distance)
    actual = with_gradients(GatedProduct.apply(kernel, offset, True, q, k, by_distance), *single)
    wanted = with_gradients(literally(*double, clip, offset), *double)
    assert_near(actual, wanted)


@pytest.mark.parametrize("terms", ["q", "k", "qk", "qc", "kc", "qkc"])
@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_equal_the_formula(shape: tuple[int, int, int], tables: int, terms: str) -> None:
    """The sums have terms of queries, keys and content; each table has its own gradient."""
    queries, keys, clip = shape
    q, k, table = random_inputs(*shape, tables)
    leaves = [x.clone().requires_grad_() for x in (q, k, table, table.flip(-2), q.flip(0), k.flip(0))]
    used = [one for one, of in zip(leaves, "qkqkcc", strict=True) if of in terms]

    def products(q: Tensor, k: Tensor, of_q: Tensor, of_k: Tensor, *content: Tensor) -> Tensor:
        by_distance = [x[:, rows(*shape)] for x in (of_q, of_k)]
        at = [x if of in terms else None for x, of in zip([q, k, *by_distance, *content], "qkqkcc", strict=True)]
        return SumOfProducts.apply(Clipped(keys - 1 - clip, keys - 1 + clip), 0.3, *at)

    def literally(q: Tensor, k: Tensor, of_q: Tensor, of_k: Tensor, *content: Tensor) -> Tensor:
        e = pairs(queries, keys, clip)
        outputs = {
            "q": torch.einsum("bhid,hijd->bhij", q, of_q.expand(3, -1, -1)[:, e]),
            "k": torch.einsum("bhjd,hijd->bhij", k, of_k.expand(3, -1, -1)[:, e]),
            "c": 0.3 * torch.einsum("bhid,bhjd->bhij", *content),
        }
        return sum(outputs[one] for one in terms)  # type: ignore[return-value]

    actual = with_gradients(products(*leaves), *used)
    double = [x.detach().double().requires_grad_() for x in leaves]
    used = [one for one, of in zip(double, "qkqkcc", strict=True) if of in terms]
    assert_near(actual, with_gradients(literally(*double), *used))


def test_gradients_may_come_in_any_layout() -> None:
    """The gradient of a sum, for example, is a single number for all pairs."""
    inputs = [x.requires_grad_() for x in random_inputs(20, 20, 3)]
    q, k, table = inputs
    output = GatedProduct.apply(Clipped(16, 22), 0.0, True, q, k, table[:, rows(20, 20, 3)])
    double = [x.detach().double().requires_grad_() for x in inputs]
    wanted = torch.autograd.grad(literally(*double, 3, 0.0).sum(), double)
    assert_near([*torch.autograd.grad(output.sum(), inputs)], [*wanted])


def test_products_of_float32_are_float32_under_any_default_dtype() -> None:
    """The default dtype of torch has no effect."""
    inputs = [x.requires_grad_() for x in random_inputs(20, 20, 3)]
    q, k, table = inputs
    torch.set_default_dtype(torch.float64)
    try:
        table = table[:, rows(20, 20, 3)]
        outputs = [
            GatedProduct.apply(Clipped(16, 22), 0.0, True, q, k, table),
            SumOfProducts.apply(Clipped(16, 22), 1.0, q, k, table, table, None, None),
        ]
        tensors = [x for one in outputs for x in (one, *torch.autograd.grad(one.sum(), inputs, retain_graph=True))]
    finally:
        torch.set_default_dtype(torch.float32)
    assert {x.dtype for x in tensors} == {torch.float32}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_passes_give_the_same_on_any_number_of_threads(threads: int) -> None:
    q, k, table = random_inputs(40, 50, 6)
    table, before = table[:, rows(40, 50, 6)], torch.get_num_threads()

    def outcome() -> list[Tensor]:
        return [GatedProduct.apply(Clipped(43, 55), 0.0, True, q, k, table), cpp.trilinear(q, k, table)]

    gated, products = outcome()
    torch.set_num_threads(threads)
    try:
        gated_again, products_again = outcome()
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(gated_again, gated, rtol=1e-6, atol=1e-6)
    assert torch.equal(products_again, products)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("name", "options", "used"),
    [
        ("m4m", "clip=7", "gates"),
        ("m4m", "clip=7,share=none,gate_offset=1", "gates"),
        ("m4", "clip=7", "spread"),
        ("shaw", "clip=7", "spread"),
        ("lfhc", "clip=7", "spread"),
        ("deberta", "clip=7", "spread"),
        *(("m3", options, "trilinear") for options in ("", "clip=9", "share=none")),
    ],
)
def test_a_layer_with_it_is_the_layer_without(
    name: str, options: str, used: str, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs and gradients, with pads; and it is what a layer in float32 takes."""
    torch.manual_seed(0)
    stack = Stack(name, options, StackShape(2, 4, 64, 96, causal=causal))
    for parameter in stack.pos.parameters() if name == "m3" else []:
        nn.init.normal_(parameter)  # ones at the start
    padding = torch.zeros(2, 61, dtype=torch.bool)
    padding[1, 50:] = True
    positions = Positions(61, 61, torch.device("cpu"), causal=causal, padding=padding)
    x, taken = torch.randn(2, 61, 64), []
    original = getattr(cpp, used)
    monkeypatch.setattr(cpp, used, lambda *x, **more: taken.append(1) or original(*x, **more))

    def outcome() -> list[Tensor]:
        output = stack(x, positions)[0]
        with torch.no_grad():
            alone = stack(x, positions)[0]
        return [output, alone, *torch.autograd.grad(output.sin().sum(), list(stack.parameters()), allow_unused=True)]

    actual = outcome()
    assert len(taken) == 4
    monkeypatch.setattr(cpp, "works", lambda source: False)
    monkeypatch.setattr(compiled, "usable", lambda *work: False)
    for one, other in zip(actual, outcome(), strict=True):
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-5 * max(1.0, float(other.detach().abs().max())))
    assert len(taken) == 4


def test_gated_product_saves_little_for_the_backward() -> None:
    """`Blocked` saves tensors of the size of all pairs."""
    q, k, table = (x.requires_grad_() for x in random_inputs(200, 200, 4))
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        output = GatedProduct.apply(Clipped(195, 203), 0.0, True, q, k, table[:, rows(200, 200, 4)])
    assert max(x.numel() for x in kept) < output.numel() // 10


@pytest.fixture
def afresh() -> Iterator[None]:
    """Forget compiled libraries before and after the test."""
    cpp._library.cache_clear()
    yield
    cpp._library.cache_clear()


def test_without_a_compiler_the_other_way_serves_and_that_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path, afresh: None
) -> None:
    monkeypatch.setattr(build, "compiler", lambda: str(tmp_path / "no-compiler"))
    q, k, table = random_inputs(20, 20, 3)
    positions = Positions(20, 20, torch.device("cpu"))
    with caplog.at_level(logging.WARNING, logger="fairseq_posenc.ops.cpp"):
        for _ in range(2):
            actual = toeplitz.gated_product(q, k, table, positions, tables.rows_of(positions, 3), 3, 0.0)
    torch.testing.assert_close(
        actual.double(), literally(q.double(), k.double(), table.double(), 3, 0.0), rtol=0, atol=1e-4
    )
    assert len(caplog.records) == 1
    expected = "clipped_products.cpp could not be compiled or loaded, so position encodings with the option clip are"
    assert caplog.messages[0].startswith(expected)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize(("rows", "columns"), [(5, 3), (40, 70), (70, 40), (101, 101)])
def test_windows_across_are_those_of_strided_copies(
    rows: int, columns: int, tables: int, flat: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copies are exact, because they only move products."""
    generator = torch.Generator().manual_seed(0)
    x, pairs = torch.randn(6, columns, 8, generator=generator), torch.randn(6, rows, columns, generator=generator)
    length = rows + columns - 1
    vectors = blocked_products.Vectors(
        torch.randn(tables, length, 8, generator=generator), *((length // 4, 3 * length // 4) if flat else (-1, length))
    )
    taken: list[str] = []
    for name in ("across", "across_backward"):
        original = getattr(cpp, name)
        monkeypatch.setattr(cpp, name, lambda *x, name=name, original=original: taken.append(name) or original(*x))

    def outcome() -> list[Tensor]:
        out = torch.full((6, rows, columns), torch.nan)
        blocked_products.fill_across(out, x, vectors)
        return [out, *blocked_products.gradients(pairs.mT, x, vectors.flipped())]

    actual = outcome()
    assert set(taken) == {"across", "across_backward"}
    monkeypatch.setattr(cpp, "works", lambda source: False)
    for one, other in zip(actual, outcome(), strict=True):
        assert torch.equal(one, other)
        assert one.isfinite().all()
