"""Test products with windows of vectors against their definition, and that compiled code uses them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_posenc.ops import toeplitz, windows
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")


def numbers(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed), requires_grad=True)


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (4, 7), (6, 2)])
def test_the_product_and_its_gradients(rows: int, columns: int) -> None:
    x, vectors = numbers(2, 3, rows, 4), numbers(rows + columns - 1, 4, seed=1)
    out = windows.product(x, vectors, columns)
    for r, c in itertools.product(range(rows), range(columns)):
        torch.testing.assert_close(out[:, :, r, c], x[:, :, r] @ vectors[c - r + rows - 1])
    assert torch.autograd.gradcheck(lambda x, vectors: windows.product(x, vectors, columns), (x, vectors))


@pytest.mark.parametrize("name", ["query_product", "key_product"])
@pytest.mark.parametrize("batch", [1, 4], ids=["few tokens", "many tokens"])
def test_compiled_products_equal_eager_ones(name: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    calls, product = [], windows.product

    def counted(*args: Any) -> Tensor:
        calls.append(args)
        return product(*args)

    monkeypatch.setattr(windows, "product", counted)
    positions, heads, dim = Positions(5, 7, CPU), 2, 8
    tokens = numbers(batch, heads, 5 if name == "query_product" else 7, dim)
    table, weights = numbers(1, 11, dim, seed=1), torch.randn(batch, heads, 5, 7, dtype=torch.float64)

    def formula(tokens: Tensor, table: Tensor) -> Tensor:
        return getattr(toeplitz, name)(tokens, table, positions, slice(0, 11))

    results = []
    for run in (formula, torch.compile(formula, backend="aot_eager", dynamic=True)):
        out = run(tokens, table)
        results.append((out, *torch.autograd.grad(out, (tokens, table), weights)))
    torch.testing.assert_close(*results)
    assert bool(calls) == (batch * heads >= dim)  # otherwise, the windows would take more memory than the products
