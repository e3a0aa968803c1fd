"""Test that products with relative vectors equal the sums over all pairs, in each way in which they are computed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_posenc.core import tables
from fairseq_posenc.ops import shifting, toeplitz, trilinear
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Case:
    """Hold the sizes of the products; `own` draws the positions of the columns at random."""

    queries: int
    before: int
    batch: int
    heads: int
    per_head: bool
    clip: int
    own: bool
    seed: int


def cases() -> st.SearchStrategy[Case]:
    sizes = {"queries": st.integers(1, 12), "before": st.integers(0, 5), "batch": st.integers(1, 3)}
    others = {"heads": st.integers(1, 3), "per_head": st.booleans(), "clip": st.integers(1, 20)}
    return st.builds(Case, **sizes, **others, own=st.booleans(), seed=st.integers(0, 99))


def check(case: Case) -> None:
    """Compare the products and their gradients with the sums over all pairs, in float64."""
    generator = torch.Generator().manual_seed(case.seed)
    keys = case.queries + case.before

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    q, k = draw(case.batch, case.heads, case.queries, 4), draw(case.batch, case.heads, keys, 4)
    table = draw(case.heads if case.per_head else 1, 2 * case.clip + 1, 4)
    weights = draw(case.batch, case.heads, case.queries, keys)
    ids = torch.randint(0, 40, (case.batch, keys), generator=generator) if case.own else None
    positions = Positions(case.queries, keys, CPU, ids=ids)
    rows = tables.rows_of(positions, case.clip)
    a = table[:, positions.delta.clamp(-case.clip, case.clip) + case.clip]  # [1 or h, (B,) Q, K, D]
    a = (a if case.own else a[:, None]).transpose(0, 1).expand(case.batch, case.heads, -1, -1, -1)
    products = {
        "q·a": (toeplitz.query_product(q, table, positions, rows), torch.einsum("bhid,bhijd->bhij", q, a)),
        "k·a": (toeplitz.key_product(k, table, positions, rows), torch.einsum("bhjd,bhijd->bhij", k, a)),
        "w·a": (toeplitz.value_product(weights, table, positions, rows), torch.einsum("bhij,bhijd->bhid", weights, a)),
    }
    if case.own:
        ours = trilinear.product_of_pairs(q, k, table, toeplitz.rows_of_pairs(positions, rows))
    else:
        ours = trilinear.product(q, k, toeplitz.by_distance(table, rows))
    products["q·k·a"] = ours, torch.einsum("bhid,bhjd,bhijd->bhij", q, k, a)
    for name, (actual, literal) in products.items():
        torch.testing.assert_close(actual, literal, rtol=1e-11, atol=1e-11, msg=lambda text: f"{name}: {text}")  # noqa: B023
        weight = torch.randn(literal.shape, generator=generator, dtype=torch.float64)
        inputs = (q, k, table, weights)
        for one, other in zip(gradients(actual, weight, inputs), gradients(literal, weight, inputs), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def gradients(output: Tensor, weight: Tensor, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    found = torch.autograd.grad((output * weight).sum(), inputs, allow_unused=True, retain_graph=True)
    return [torch.zeros(()) if gradient is None else gradient for gradient in found]


@settings(max_examples=100, deadline=None)
@given(cases())
def test_products_equal_the_sums(case: Case) -> None:
    check(case)


@settings(max_examples=30, deadline=None)
@given(cases())
def test_products_in_blocks_equal_the_sums(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toeplitz, "BLOCK", 3)
        patch.setattr(toeplitz, "CHUNK", 100)
        patch.setattr(toeplitz, "FEW", 0)
        check(case)


@settings(max_examples=30, deadline=None)
@given(cases())
def test_products_in_the_form_for_a_compiler_equal_the_sums(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toeplitz.torch.compiler, "is_compiling", lambda: True)
        check(case)


def test_a_product_that_reads_the_wrong_vector_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = shifting.shift
    monkeypatch.setattr(toeplitz, "shift", lambda x, keys: shift(x.roll(1, -1), keys))
    with pytest.raises(AssertionError, match="q·a"):
        check(Case(5, 2, 1, 1, per_head=False, clip=9, own=False, seed=0))


@pytest.mark.parametrize("few", [0, 16], ids=["vectors", "products"])
def test_the_gradient_of_a_row_is_summed_in_float32_at_own_positions(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At equal positions, all pairs of all samples read the same row."""
    monkeypatch.setattr(toeplitz, "FEW", few)
    table = torch.zeros(1, 11, 8, dtype=torch.bfloat16, requires_grad=True)
    q = torch.ones(200, 1, 6, 8, dtype=torch.bfloat16)
    positions = Positions(6, 6, CPU, ids=torch.zeros(200, 6, dtype=torch.long))
    product = toeplitz.query_product(q, table, positions, torch.tensor([5])).float()
    (gradient,) = torch.autograd.grad(product.sum(), table)
    assert float(gradient.double().sum()) == pytest.approx(200 * 6 * 6 * 8, rel=0.01)
