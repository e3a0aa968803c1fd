"""Test that each kernel and its gradients equal its slow form over all pairs, in each way in which it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_posenc.core import tables
from fairseq_posenc.ops import content, shifting, toeplitz, trilinear, windows
from fairseq_posenc.positions import Positions

pytestmark = pytest.mark.usefixtures("_new_memory_is_nan")

CPU = torch.device("cpu")
DIM = 4


@dataclass(frozen=True)
class Case:
    """Hold the sizes of the inputs; `own` draws the positions of the columns at random."""

    queries: int
    before: int
    batch: int
    heads: int
    per_head: bool
    clip: int
    gap: int
    own: bool
    seed: int


def cases() -> st.SearchStrategy[Case]:
    sizes = {"queries": st.integers(1, 12), "before": st.integers(0, 5), "batch": st.integers(1, 3)}
    tables = {"heads": st.integers(1, 3), "per_head": st.booleans(), "clip": st.integers(1, 20)}
    return st.builds(Case, **sizes, **tables, gap=st.integers(0, 3), own=st.booleans(), seed=st.integers(0, 99))


class Inputs:
    """Hold random inputs of all kernels. Pairs are those of `queries` rows and `keys` columns."""

    def __init__(self, case: Case) -> None:
        self.case, self.keys = case, case.queries + case.before
        self.generator = torch.Generator().manual_seed(case.seed)
        size = case.batch, case.heads
        distances = case.queries + self.keys - 1
        self.q, self.k = self.draw(*size, case.queries, DIM), self.draw(*size, self.keys, DIM)
        self.weights = self.draw(*size, case.queries, self.keys)
        self.by_distance = self.draw(*size, case.queries, distances + case.gap)
        self.of_keys = self.draw(*size, self.keys, distances)
        self.table = self.draw(case.heads if case.per_head else 1, 2 * case.clip + 1, DIM)
        self.vectors, self.bias = self.draw(distances, DIM), self.draw(case.heads, distances)
        self.tensors = tuple(tensor for tensor in vars(self).values() if isinstance(tensor, Tensor))

    def draw(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64).requires_grad_()


def of_distances(x: Inputs) -> dict[str, tuple[Tensor, Tensor]]:
    """Return by name the output of each kernel that reorders numbers or vectors by distance, and of its slow form."""
    queries, keys, per_head = x.case.queries, x.keys, x.case.per_head
    row, column = torch.arange(queries)[:, None], torch.arange(keys)
    pair = column - row + queries - 1  # entry of the distance of each pair, [Q, K]
    length = queries + keys - 1 + x.case.gap
    zeros = torch.zeros(*x.q.shape[:3], length, dtype=torch.float64)
    product = torch.einsum("bhid,ijd->bhij", x.q, x.vectors[pair])
    return {
        "shift": (shifting.shift(x.by_distance, keys, heads_first=per_head), x.by_distance[:, :, row, pair]),
        "transposed shift": (
            shifting.shift_transposed(x.of_keys, queries, heads_first=per_head),
            x.of_keys[:, :, column, queries + keys - 2 - pair],
        ),
        "unshift": (shifting.unshift(x.weights, length), zeros.scatter(-1, pair.expand_as(x.weights), x.weights)),
        "to pairs": (shifting.to_pairs(x.bias, Positions(queries, keys, CPU)), x.bias[:, pair][None]),
        "windows": (windows.product(x.q, x.vectors, keys), product),
        "q·k": (content.dot_products(x.q, x.k), torch.einsum("bhid,bhjd->bhij", x.q, x.k)),
        "w·v": (content.of_values(x.weights, x.k), torch.einsum("bhij,bhjd->bhid", x.weights, x.k)),
    }


def of_a_table(x: Inputs) -> dict[str, tuple[Tensor, Tensor]]:
    """Return by name the output of each product with the rows of a table, and the sum over all pairs."""
    case, q, k, table = x.case, x.q, x.k, x.table
    ids = torch.randint(0, 40, (case.batch, x.keys), generator=x.generator) if case.own else None
    positions = Positions(case.queries, x.keys, CPU, ids=ids)
    rows = tables.rows_of(positions, case.clip)
    a = table[:, positions.delta.clamp(-case.clip, case.clip) + case.clip]  # [1 or h, (B,) Q, K, D]
    a = (a if case.own else a[:, None]).transpose(0, 1).expand(case.batch, case.heads, -1, -1, -1)
    if case.own:
        of_three = trilinear.product_of_pairs(q, k, table, toeplitz.rows_of_pairs(positions, rows))
    else:
        of_three = trilinear.product(q, k, toeplitz.by_distance(table, rows))
    values = toeplitz.value_product(x.weights, table, positions, rows)
    return {
        "q·a": (toeplitz.query_product(q, table, positions, rows), torch.einsum("bhid,bhijd->bhij", q, a)),
        "k·a": (toeplitz.key_product(k, table, positions, rows), torch.einsum("bhjd,bhijd->bhij", k, a)),
        "w·a": (values, torch.einsum("bhij,bhijd->bhid", x.weights, a)),
        "q·k·a": (of_three, torch.einsum("bhid,bhjd,bhijd->bhij", q, k, a)),
    }


def check(case: Case) -> None:
    """Compare the outputs of all kernels and their gradients with the slow forms, in float64."""
    x = Inputs(case)
    for name, (actual, slow) in {**of_distances(x), **of_a_table(x)}.items():
        weight = torch.randn(slow.shape, generator=x.generator, dtype=torch.float64)
        pairs = zip([actual, *gradients(actual, weight, x)], [slow, *gradients(slow, weight, x)], strict=True)
        for one, other in pairs:
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10, msg=lambda text: f"{name}: {text}")  # noqa: B023


def gradients(output: Tensor, weight: Tensor, x: Inputs) -> list[Tensor]:
    loss = (output * weight).sum()
    return list(torch.autograd.grad(loss, x.tensors, allow_unused=True, materialize_grads=True, retain_graph=True))


@settings(max_examples=100, deadline=None)
@given(cases())
def test_kernels_equal_their_slow_forms(case: Case) -> None:
    check(case)


#: Sizes from which on a kernel is computed in blocks, or reads a vector for each pair.
SMALL_BLOCKS = [(toeplitz, "BLOCK", 3), (toeplitz, "CHUNK", 100), (toeplitz, "FEW", 0)]
FOR_A_COMPILER = [(torch.compiler, "is_compiling", lambda: True)]


@pytest.mark.parametrize("way", [SMALL_BLOCKS, FOR_A_COMPILER], ids=["in blocks", "for a compiler"])
def test_kernels_in_another_way_equal_their_slow_forms(way: list[tuple[Any, str, Any]]) -> None:
    @settings(max_examples=30, deadline=None)
    @given(cases())
    def check_all(case: Case) -> None:
        check(case)

    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in way:
            patch.setattr(module, name, value)
        check_all()


def test_a_product_that_reads_the_wrong_vector_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert torch.empty(3).isnan().all()
    shift = shifting.shift
    monkeypatch.setattr(toeplitz, "shift", lambda x, keys: shift(x.roll(1, -1), keys))
    with pytest.raises(AssertionError, match="q·a"):
        check(Case(5, 2, 1, 1, per_head=False, clip=9, gap=0, own=False, seed=0))


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


def test_the_products_of_a_single_row_in_half_precision_are_not_rounded_before_they_are_summed() -> None:
    """With the smallest step e, (1 + e)^2 - (1 + 2 e) is e^2; it would be 0 if (1 + e)^2 were rounded."""
    e = torch.finfo(torch.bfloat16).eps
    row = torch.tensor([[[[1 + e, -1]]]], dtype=torch.bfloat16)
    column = torch.tensor([[[[1 + e], [1 + 2 * e]]]], dtype=torch.bfloat16)
    for product in (content.dot_products(row, column.mT), content.of_values(row, column)):
        assert product.item() == e * e
