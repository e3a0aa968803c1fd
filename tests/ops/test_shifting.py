"""Test the reordering of distances in the form for a compiler: it equals the eager form, and so do its gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fairseq_posenc.ops import compiled, shifting
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")
SIZES = [(5, 5), (4, 7), (6, 2), (1, 4)]
Function = Callable[[Tensor], Tensor]


def check(function: Function, x: Tensor, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """Compare outputs and gradients of both forms, and return the output."""
    expected = function(x)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    actual = function(x)
    torch.testing.assert_close(actual, expected)
    weights = torch.randn_like(expected)
    gradients = [torch.autograd.grad(out, x, weights)[0] for out in (actual, expected)]
    torch.testing.assert_close(*gradients)
    return actual


def numbers(*size: int) -> Tensor:
    return torch.randn(*size, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)


@pytest.mark.parametrize("heads_first", [False, True])
@pytest.mark.parametrize("more", [0, 3], ids=["no gap", "gap"])
@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_shift(queries: int, keys: int, more: int, heads_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers(2, 3, queries, queries + keys - 1 + more)
    out = check(lambda x: shifting.shift(x, keys, heads_first=heads_first), x, monkeypatch)
    assert all(out[0, 0, i, j] == x[0, 0, i, j - i + queries - 1] for i in range(queries) for j in range(keys))


@pytest.mark.parametrize("heads_first", [False, True])
@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_transposed_shift(queries: int, keys: int, heads_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = numbers(2, 3, keys, queries + keys - 1)
    out = check(lambda x: shifting.shift_transposed(x, queries, heads_first=heads_first), x, monkeypatch)
    assert all(out[1, 2, i, j] == x[1, 2, j, i - j + keys - 1] for i in range(queries) for j in range(keys))


@pytest.mark.parametrize(("queries", "keys"), SIZES)
def test_unshift_is_the_adjoint_of_shift(queries: int, keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, length = numbers(2, 3, queries, keys), queries + keys + 2
    by_distance = check(lambda x: shifting.unshift(x, length), x, monkeypatch)
    y = torch.randn_like(by_distance)
    torch.testing.assert_close((by_distance * y).sum(), (x * shifting.shift(y, keys)).sum())


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (4, 7), (1, 4)])
def test_a_bias_is_copied_to_its_pairs(queries: int, keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vector = numbers(3, queries + keys - 1)
    positions = Positions(queries, keys, CPU)
    out = check(lambda vector: shifting.to_pairs(vector, positions), vector, monkeypatch)
    assert all(out[0, 2, i, j] == vector[2, j - i + queries - 1] for i in range(queries) for j in range(keys))


def test_compiled_rows_have_a_multiple_of_eight_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shifting.padded(numbers(1, 13, 4), -2).shape == (1, 13, 4)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert shifting.padded(numbers(1, 13, 4), -2).shape == (1, 16, 4)
    assert shifting.padded(numbers(1, 16), -1).shape == (1, 16)


def test_own_gradients_are_used_by_torch_compile_and_not_by_torch_export() -> None:
    """In code that torch.compile of torch 2.11 traces, torch.compiler.is_exporting() is always true."""
    torch._dynamo.reset()

    class Module(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1 if compiled.own_gradients() else x - 1

    assert torch.compile(Module(), backend="eager", fullgraph=True)(torch.zeros(1)) == 1
    assert torch.export.export(Module(), (torch.zeros(1),)).module()(torch.zeros(1)) == -1
