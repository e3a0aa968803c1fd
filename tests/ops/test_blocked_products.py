"""Test that products in blocks of rows equal sums over all pairs, for all sizes, blocks, chunks and clip distances."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_posenc.core import tables
from fairseq_posenc.ops import blocked_products, pair_products, toeplitz
from fairseq_posenc.ops.content import Content
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")


def pairs(table: Tensor, rows: Tensor | slice, positions: Positions) -> Tensor:
    """Return the vector of every pair, [1 or h, Q, K, D]."""
    by_distance = toeplitz.take(table, rows, -2)
    index = positions.delta + positions.key_length - 1
    return by_distance[:, index]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, object]:
    queries, before = draw(st.integers(2, 23)), draw(st.integers(0, 9))
    return {
        "queries": queries,
        "keys": queries + before,
        "heads": draw(st.integers(1, 3)),
        "batch": draw(st.integers(1, 3)),
        "per_head": draw(st.booleans()),
        "clip": draw(st.none() | st.integers(1, 30)),
        "block": draw(st.integers(1, 9)),
        "chunk": draw(st.sampled_from([1, 150, 700, 10**6])),
        "copied": draw(st.sampled_from([1, 10**6])),
        "seed": draw(st.integers(0, 99)),
    }


def draw_inputs(case: dict[str, object]) -> tuple[Tensor, Tensor, Tensor, Positions, Tensor | slice, int | None]:
    torch.manual_seed(case["seed"])
    batch, heads, queries, keys = (case[name] for name in ("batch", "heads", "queries", "keys"))
    clip, dim = case["clip"], 4
    reach = keys - 1 if clip is None else clip

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64)

    q = draw(batch, queries, heads, dim).transpose(1, 2).requires_grad_()  # strides as in the attention
    k = draw(batch, keys, heads, dim).transpose(1, 2).requires_grad_()
    table = draw(heads if case["per_head"] else 1, 2 * reach + 1, dim).requires_grad_()
    positions = Positions(queries, keys, CPU)
    return q, k, table, positions, tables.rows_of(positions, reach), clip


@contextmanager
def limits(case: dict[str, object]) -> Iterator[None]:
    """Set the sizes at which products are cut into pieces."""
    names = {"SMALL_BLOCK": "block", "CHUNK": "chunk", "LEAST_COPIED": "copied", "CACHED": "chunk"}
    with pytest.MonkeyPatch.context() as patch:
        for constant, name in names.items():
            patch.setattr(pair_products if constant == "CHUNK" else blocked_products, constant, case[name])
        yield


def check(actual: Tensor, literal: Tensor, inputs: list[Tensor]) -> None:
    """Compare values and gradients."""
    torch.testing.assert_close(actual, literal, rtol=1e-11, atol=1e-11)
    weight = torch.randn_like(literal)
    ours, theirs = (torch.autograd.grad((x * weight).sum(), inputs, retain_graph=True) for x in (actual, literal))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_products_equal_the_sums(case: dict[str, object]) -> None:
    q, k, table, positions, rows, clip = draw_inputs(case)
    queries = positions.query_length
    with limits(case):
        a = pairs(table, rows, positions)
        of_query, of_key = torch.einsum("bhid,hijd->bhij", q, a), torch.einsum("bhjd,hijd->bhij", k, a)
        check(toeplitz.query_product(q, table, positions, rows, clip), of_query, [q, table])
        check(toeplitz.key_product(k, table, positions, rows, clip), of_key, [k, table])
        check(toeplitz.both_products(q, k, table, table, positions, rows, clip), of_query + of_key, [q, k, table])
        other = (2 * table.detach()).requires_grad_()
        both = toeplitz.both_products(q, k, table, other, positions, rows, clip)
        twice = torch.einsum("bhjd,hijd->bhij", k, pairs(other, rows, positions))
        check(both, of_query + twice, [q, k, table, other])
        content = Content(k[:, :, -queries:], k, 0.3)
        with_content = toeplitz.both_products(q, k, table, other, positions, rows, clip, content)
        assert content.taken
        check(with_content, of_query + twice + content.product(), [q, k, table, other])
        content = Content(q, q[:, :, :1].expand_as(k), 0.3)
        check(
            toeplitz.query_product(q, table, positions, rows, clip, content), of_query + content.product(), [q, table]
        )


@settings(max_examples=100, deadline=None)
@given(cases(), st.sampled_from([0.0, 1.0]))
def test_gated_products_equal_the_products(case: dict[str, object], offset: float) -> None:
    q, k, table, positions, rows, clip = draw_inputs(case)
    with limits(case):
        a = pairs(table, rows, positions)
        gates = [offset + torch.einsum(f"bh{x}d,hijd->bhij", y, a) for x, y in (("i", q), ("j", k))]
        literal = torch.einsum("bhid,bhjd->bhij", q, k) * gates[0] * gates[1] / q.shape[-1] ** 0.5
        actual = toeplitz.gated_product(q, k, table, positions, rows, clip, offset)
        check(actual, literal, [q, k, table])


@pytest.mark.parametrize("clip", [None, 20, 152])
def test_many_rows_take_large_blocks(clip: int | None) -> None:
    """Nothing is patched here, and the last block is not full."""
    case = {"queries": 300, "keys": 310, "heads": 1, "batch": 2, "per_head": False, "clip": clip, "seed": 0}
    q, k, table, positions, rows, _ = draw_inputs(case)
    first, last = toeplitz._flat(positions, clip)
    sizes = {b.stop - b.start for b in blocked_products._blocks(300, 310, blocked_products.Vectors(table, first, last))}
    large = clip != 20  # otherwise, windows are small
    assert (blocked_products.LARGE_BLOCK in sizes) == large
    assert 300 % blocked_products.LARGE_BLOCK
    a = pairs(table, rows, positions)
    literal = torch.einsum("bhid,hijd->bhij", q, a) + torch.einsum("bhjd,hijd->bhij", k, a)
    check(toeplitz.both_products(q, k, table, table, positions, rows, clip), literal, [q, k, table])


def test_content_is_taken_once_and_not_in_half_precision() -> None:
    q, k, table = torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 9, 4)
    content = Content(q, k, 0.5)
    arguments = table, Positions(5, 5, CPU), slice(0, 9)
    bias = toeplitz.query_product(q, *arguments)
    torch.testing.assert_close(toeplitz.query_product(q, *arguments, content=content), bias + content.product())
    torch.testing.assert_close(toeplitz.query_product(q, *arguments, content=content), bias)
    half = Content(q.bfloat16(), k.bfloat16(), 0.5)  # the attention adds it in float32
    toeplitz.query_product(q.bfloat16(), table.bfloat16(), *arguments[1:], content=half)
    assert not half.taken
    one = Content(q[:, :, :1], k, 0.5)
    toeplitz.query_product(q[:, :, :1], table, Positions(1, 5, CPU), slice(0, 5), content=one)
    assert not one.taken


def test_a_second_derivative_is_refused() -> None:
    q = torch.randn(1, 1, 3, 4, requires_grad=True)
    table = torch.randn(1, 5, 4, requires_grad=True)
    bias = toeplitz.query_product(q, table, Positions(3, 3, CPU), slice(0, 5))
    (first,) = torch.autograd.grad(bias.square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_what_a_window_skips_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that lacks a distance on the left must make the comparison fail."""
    monkeypatch.setattr(blocked_products, "SMALL_BLOCK", 2)
    q, table = torch.randn(1, 1, 9, 4, dtype=torch.float64), torch.randn(1, 5, 4, dtype=torch.float64)
    positions = Positions(9, 9, CPU)
    rows = tables.rows_of(positions, 2)
    literal = torch.einsum("bhid,hijd->bhij", q, pairs(table, rows, positions))
    assert torch.allclose(toeplitz.query_product(q, table, positions, rows, 2), literal)
    assert not torch.allclose(toeplitz.query_product(q, table, positions, rows, 1), literal)
