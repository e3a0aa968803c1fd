"""Test law 6: attention with memory equals attention over the longer context, or is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from .cases import Case, claims, in_turn
from .compare import assert_close, assert_refused
from .scene import Scene, attend_all, padded, positions_of, use_path

MEMORY, QUERIES = 4, 5


def check_memory(case: Case, path: str) -> None:
    """Check that M columns of memory and Q queries give the last Q rows of M + Q columns, in every layer."""
    stack = Scene(queries=MEMORY + QUERIES).stack(case)
    use_path(stack, path)
    tokens = padded([9, 9, 9], MEMORY + QUERIES)
    x = torch.randn(3, MEMORY + QUERIES, stack.shape.dim, dtype=torch.float64)
    with torch.no_grad():
        whole = attend_all(stack, x, positions_of(tokens, stack))
        positions = positions_of(tokens[:, MEMORY:], stack, memory=MEMORY)
        parts = attend_all(stack, x[:, MEMORY:], positions, memory=x[:, :MEMORY])
    assert_close(parts, whole[:, :, MEMORY:], 1e-12, "with memory")


def check_memory_refused(case: Case) -> None:
    """Check that a stack refuses memory if the encoding does not declare it, see test_undeclared.py for layers."""
    stack = Scene().stack(case)
    positions = replace(positions_of(padded([7], 7), stack), query_length=4, memory=3)
    x = torch.zeros(1, 4, stack.shape.dim, dtype=torch.float64)
    states = [torch.zeros(1, 3, stack.shape.dim, dtype=torch.float64) for _ in stack.layers]
    assert_refused(lambda: stack(x, positions, memory=states), case.spec, "memory")


@pytest.mark.parametrize("case", in_turn(lambda case: case.capabilities.memory, claims))
def test_memory_equals_a_longer_context(case: Case) -> None:
    for path in ("explicit", "auto"):
        check_memory(case, path)


@pytest.mark.parametrize("case", in_turn(lambda case: not case.capabilities.memory, claims))
def test_memory_is_refused_where_it_is_not_declared(case: Case) -> None:
    check_memory_refused(case)
