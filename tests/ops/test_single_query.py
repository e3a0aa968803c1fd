"""Test that the products of a single query equal the last row of the products of all queries, with and without C++."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import forward_ad

from fairseq_posenc.core import tables
from fairseq_posenc.ops import cpp, single_query, toeplitz
from fairseq_posenc.ops.content import Content
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")


@st.composite
def cases(draw: st.DrawFn) -> dict[str, int | bool | None]:
    return {
        "keys": draw(st.integers(1, 40)),
        "heads": draw(st.integers(1, 3)),
        "batch": draw(st.integers(1, 3)),
        "per_head": draw(st.booleans()),
        "clip": draw(st.none() | st.integers(1, 45)),
        "seed": draw(st.integers(0, 99)),
    }


def draw_inputs(
    case: dict[str, int | bool | None],
) -> tuple[Tensor, Tensor, Tensor, Positions, Tensor | slice, int | None]:
    torch.manual_seed(case["seed"])
    batch, heads, keys, clip = (case[name] for name in ("batch", "heads", "keys", "clip"))
    reach = keys if clip is None else clip
    shapes = (batch, heads, 1, 4), (batch, heads, keys, 4), (heads if case["per_head"] else 1, 2 * reach + 1, 4)
    q, k, table = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    positions = Positions(1, keys, CPU)
    return q, k, table, positions, tables.rows_of(positions, reach), clip


def vectors(table: Tensor, keys: int, clip: int | None) -> Tensor:
    """Return the vector of each key by the formula, [1 or h, K, D]."""
    reach = (table.shape[-2] - 1) // 2
    distances = torch.arange(keys) - (keys - 1)
    return table[:, (distances if clip is None else distances.clamp(-clip, clip)) + reach]


@settings(max_examples=100, deadline=None)
@given(cases())
def test_products_equal_the_sums(case: dict[str, int | bool | None]) -> None:
    q, k, table, positions, rows, clip = draw_inputs(case)
    a = vectors(table, positions.key_length, clip)
    content = torch.einsum("bhid,bhjd->bhij", q, k)
    of_query, of_key = torch.einsum("bhid,hjd->bhij", q, a), torch.einsum("bhjd,hjd->bhj", k, a).unsqueeze(2)
    arguments = positions, rows, clip
    check(toeplitz.query_product(q, table, *arguments), of_query, (q, table))
    check(toeplitz.key_product(k, table, *arguments), of_key, (k, table))
    check(toeplitz.both_products(q, k, table, table, *arguments), of_query + of_key, (q, k, table))
    taken = Content(q, k, 0.7)
    both = toeplitz.both_products(q, k, table, table, *arguments, taken)
    assert taken.taken
    check(both, of_query + of_key + 0.7 * content, (q, k, table))
    check(
        toeplitz.gated_product(q, k, table, *arguments, 0.3),
        content / 2 * (0.3 + of_query) * (0.3 + of_key),
        (q, table),
    )
    check(
        toeplitz.trilinear_product(q, k, table, *arguments), torch.einsum("bhid,bhjd,hjd->bhij", q, k, a), (q, k, table)
    )


def check(actual: Tensor, literal: Tensor, inputs: tuple[Tensor, ...]) -> None:
    """Compare values and gradients."""
    torch.testing.assert_close(actual, literal, rtol=1e-11, atol=1e-11)
    weight = torch.randn_like(literal)
    ours, theirs = (torch.autograd.grad((x * weight).sum(), inputs, retain_graph=True) for x in (actual, literal))
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize("dim", [3, 16, 40])
@pytest.mark.parametrize("shared", [0, 5, 23, 37])
def test_the_loop_in_cpp_equals_the_others(shared: int, dim: int, tables: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys may be a part of a cache's buffer, and vectors a part of a table."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 3, 1, dim), torch.randn(2, 3, 40, dim)[:, :, :37]
    a = torch.randn(tables, 41, dim)[:, 2 : 39 if not shared else 40 - shared]
    ways = (
        lambda: single_query.of_keys(k, a, shared),
        lambda: single_query.of_keys_and_query(k, a, q, shared),
        lambda: torch.cat(single_query.of_query_and_of_keys(k, a, q, shared)),
        lambda: single_query.of_all_three(k, a, q, shared),
    )
    with torch.no_grad():
        eager = [way() for way in ways]
        monkeypatch.setattr(single_query, "LEAST", 1)
        calls: list[str] = []
        loop = cpp.single_query
        monkeypatch.setattr(cpp, "single_query", lambda way, *arguments: calls.append(way) or loop(way, *arguments))
        for way, other in zip(ways, eager, strict=True):
            torch.testing.assert_close(way(), other, rtol=1e-5, atol=1e-5)
    assert calls == ["alone", "added", "both", "multiplied"]


def test_without_a_compiler_and_with_gradients_the_others_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, a = torch.randn(1, 2, 1, 8), torch.randn(1, 2, 5, 8, requires_grad=True), torch.randn(1, 5, 8)
    monkeypatch.setattr(single_query, "LEAST", 1)
    assert single_query.of_keys_and_query(k, a, q).requires_grad
    monkeypatch.setattr(cpp, "works", lambda source: False)
    monkeypatch.setattr(cpp, "single_query", None)
    with torch.no_grad():
        actual = single_query.of_keys_and_query(k, a, q)
    torch.testing.assert_close(actual, torch.einsum("bhjd,bhjd->bhj", k, q + a).unsqueeze(2))


def test_operations_that_torch_must_see_run_in_torch() -> None:
    """In C++, a traced graph would contain an empty tensor, forward gradients would be lost and vmap would fail."""
    q, k, a = torch.randn(1, 2, 1, 64), torch.randn(1, 2, 512, 64), torch.randn(1, 512, 64)
    assert k.numel() >= single_query.LEAST
    with torch.no_grad():
        literal = torch.einsum("bhjd,bhjd->bhj", k, q + a).unsqueeze(2)
        traced = torch.jit.trace(lambda q: single_query.of_keys_and_query(k, a, q), q, check_trace=False)
        torch.testing.assert_close(traced(q), literal, rtol=1e-4, atol=1e-4)
        mapped = torch.vmap(lambda q: single_query.of_keys_and_query(k, a, q))(q[None])
        torch.testing.assert_close(mapped[0], literal, rtol=1e-4, atol=1e-4)
        with forward_ad.dual_level():
            output = single_query.of_keys_and_query(k, a, forward_ad.make_dual(q, torch.ones_like(q)))
            tangent = forward_ad.unpack_dual(output).tangent
    torch.testing.assert_close(tangent, k.sum(-1).unsqueeze(2), rtol=1e-4, atol=1e-4)


def test_content_of_other_keys_is_not_taken() -> None:
    """Projected content, as with RoPE, is left to the attention."""
    q, k = torch.randn(1, 2, 1, 4), torch.randn(1, 2, 5, 4)
    content = Content(q, k.clone(), 1.0)
    toeplitz.both_products(
        q, k, torch.randn(1, 9, 4), torch.randn(1, 9, 4), Positions(1, 5, CPU), slice(0, 5), None, content
    )
    assert not content.taken
