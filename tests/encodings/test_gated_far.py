"""M4M's product where far distances share a vector: one pass in C++ gives what the formula and the other way give."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fairseq_posenc.encodings import StackShape, gated_far, native, toeplitz
from fairseq_posenc.encodings.gated_far import FarGatedProduct
from fairseq_posenc.positions import Positions
from fairseq_posenc.stack import Stack

#: queries, keys, clip: a row, an end that no query has, memory, and rows beyond what a register holds
SHAPES = [(2, 3, 0), (2, 3, 1), (20, 20, 3), (20, 20, 9), (7, 40, 5), (7, 40, 19), (70, 131, 17), (33, 33, 0)]


def given(queries: int, keys: int, clip: int, tables: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and one vector a distance."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2, 3, length, 8, generator=generator) for length in (queries, keys))
    return q, k, torch.randn(tables, 2 * clip + 1, 8, generator=generator)


def rows(queries: int, keys: int, clip: int) -> Tensor:
    """Of each distance, in the order of the table."""
    return (torch.arange(queries + keys - 1) - keys + 1).clamp(-clip, clip) + clip


def literally(q: Tensor, k: Tensor, table: Tensor, clip: int, offset: float) -> Tensor:
    """In float64."""
    queries, keys = q.shape[2], k.shape[2]
    distances = torch.arange(keys)[None, :] - torch.arange(keys - queries, keys)[:, None]
    a = table.expand(q.shape[1], -1, -1)[:, distances.clamp(-clip, clip) + clip]
    of_query = torch.einsum("bhid,hijd->bhij", q, a) + offset
    of_key = torch.einsum("bhjd,hijd->bhij", k, a) + offset
    return torch.einsum("bhid,bhjd->bhij", q, k) * of_query * of_key / q.shape[-1] ** 0.5


def with_gradients(made: Tensor, *inputs: Tensor) -> list[Tensor]:
    weights = torch.randn(made.shape, generator=torch.Generator().manual_seed(1)).to(made.dtype)
    return [made, *torch.autograd.grad(made, inputs, weights)]


@pytest.mark.parametrize("offset", [0.0, 0.5])
@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_equals_the_formula(shape: tuple[int, int, int], tables: int, offset: float) -> None:
    """Outputs and gradients."""
    _, keys, clip = shape
    single = [x.requires_grad_() for x in given(*shape, tables)]
    double = [x.detach().double().requires_grad_() for x in single]
    q, k, table = single
    flat = keys - 1 - clip, keys - 1 + clip
    by_distance = table[:, rows(*shape)]
    assert gated_far.serves(q, k, by_distance, flat)
    found = with_gradients(FarGatedProduct.apply(q, k, by_distance, offset, flat), *single)
    wanted = with_gradients(literally(*double, clip, offset), *double)
    for one, other in zip(found, wanted, strict=True):
        size = max(1.0, float(other.detach().abs().max()))
        torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-6 * size)


def test_gradients_may_come_in_any_layout() -> None:
    """A sum's is one number for all pairs."""
    inputs = [x.requires_grad_() for x in given(20, 20, 3)]
    q, k, table = inputs
    made = FarGatedProduct.apply(q, k, table[:, rows(20, 20, 3)], 0.0, (16, 22))
    double = [x.detach().double().requires_grad_() for x in inputs]
    wanted = torch.autograd.grad(literally(*double, 3, 0.0).sum(), double)
    for one, other in zip(torch.autograd.grad(made.sum(), inputs), wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=0, atol=2e-6 * float(other.abs().max()))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_it_is_the_same_on_any_number_of_threads(threads: int) -> None:
    q, k, table = given(40, 50, 6)
    table = table[:, rows(40, 50, 6)]
    expected, before = FarGatedProduct.apply(q, k, table, 0.0, (43, 55)), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.testing.assert_close(FarGatedProduct.apply(q, k, table, 0.0, (43, 55)), expected, rtol=1e-6, atol=1e-6)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("options", ["clip=7", "clip=7,share=none,gate_offset=1"])
def test_a_layer_with_it_is_the_layer_without(options: str, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs and gradients, with pads; and it is what a layer in float32 takes."""
    torch.manual_seed(0)
    stack = Stack("m4m", options, StackShape(2, 4, 64, 96, causal=causal))
    padding = torch.zeros(2, 61, dtype=torch.bool)
    padding[1, 50:] = True
    positions = Positions(61, 61, torch.device("cpu"), causal=causal, padding=padding)
    x, taken = torch.randn(2, 61, 64), []
    gates = native.gates
    monkeypatch.setattr(native, "gates", lambda *x: taken.append(1) or gates(*x))

    def outcome() -> list[Tensor]:
        made = stack(x, positions)[0]
        return [made, *torch.autograd.grad(made.sin().sum(), list(stack.parameters()), allow_unused=True)]

    found = outcome()
    assert len(taken) == 2
    monkeypatch.setattr(native, "works", lambda source: False)
    for one, other in zip(found, outcome(), strict=True):
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-5 * max(1.0, float(other.detach().abs().max())))
    assert len(taken) == 2


def test_it_keeps_two_gates_of_few_numbers() -> None:
    """What the other way keeps is of the size of all pairs."""
    q, k, table = (x.requires_grad_() for x in given(200, 200, 4))
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        made = FarGatedProduct.apply(q, k, table[:, rows(200, 200, 4)], 0.0, (195, 203))
    assert max(x.numel() for x in kept) < made.numel() // 10


@pytest.fixture
def afresh() -> Iterator[None]:
    """Nothing compiled yet, before and after."""
    native._library.cache_clear()
    yield
    native._library.cache_clear()


def test_without_a_compiler_the_other_way_serves_and_that_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path, afresh: None
) -> None:
    monkeypatch.setattr(native, "compiler", lambda: str(tmp_path / "no-compiler"))
    q, k, table = given(20, 20, 3)
    positions = Positions(20, 20, torch.device("cpu"))
    with caplog.at_level(logging.WARNING, logger="fairseq_posenc.encodings.native"):
        for _ in range(2):
            found = toeplitz.gated_product(q, k, table, positions, toeplitz.rows_of(positions, 3), 3, 0.0)
    torch.testing.assert_close(
        found.double(), literally(q.double(), k.double(), table.double(), 3, 0.0), rtol=0, atol=1e-4
    )
    assert len(caplog.records) == 1
    assert caplog.messages[0].startswith("M4M's gates are written out for all pairs, which is slower: ")
