"""Test when compiled loops keep rows in registers, and which loops stay apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import sympy  # type: ignore[import-untyped]
from torch._inductor.dependencies import MemoryDep
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from fairseq_posenc.attention.rows import LONGEST, _KeepRows

ROW, COLUMN, LENGTH = sympy.symbols("row column length", integer=True)
BY_ROWS, BY_COLUMNS = ROW * LENGTH + COLUMN, ROW + COLUMN * LENGTH


def loop(reads: Any, writes: Any, *, reduces: bool) -> Any:
    """Return a stand-in for a loop over rows and, innermost, columns."""
    deps = [
        MemoryDep(name, index, (ROW, COLUMN), (LENGTH, LENGTH))
        for name, index in zip("ab", (reads, writes), strict=True)
    ]
    accesses = SimpleNamespace(reads=OrderedSet(deps[:1]), reads_and_writes=lambda: OrderedSet(deps))
    return SimpleNamespace(read_writes=accesses, is_reduction=lambda: reduces)


@pytest.mark.parametrize(
    ("reads", "longest", "kept"), [(BY_ROWS, 512, True), (BY_COLUMNS, 512, False), (BY_ROWS, 2 * LONGEST, False)]
)
def test_short_rows_of_neighbours_are_kept(
    reads: Any, longest: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_KeepRows.__base__, "should_use_persistent_reduction", lambda *args: False)
    features = SimpleNamespace(reduction_numel=LENGTH, reduction_nodes=lambda: [loop(reads, ROW, reduces=True)])
    graph: Any = SimpleNamespace(
        sizevars=SimpleNamespace(statically_known_leq=lambda size, bound: size == LENGTH and longest <= bound)
    )
    with V.set_graph_handler(graph):
        assert _KeepRows.should_use_persistent_reduction(features, False) == kept


@pytest.mark.parametrize(("writes", "fused"), [(BY_ROWS, True), (BY_COLUMNS, False)])
def test_transposing_loops_stay_apart(writes: Any, fused: bool) -> None:
    rows = loop(BY_ROWS, ROW, reduces=True)
    assert _KeepRows.can_fuse_vertical(None, rows, loop(BY_ROWS, writes, reduces=False), 0) == fused
