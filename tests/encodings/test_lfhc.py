"""Test which row each distance reads in each layer of LFHC (Qu et al. 2021, equations 5 and 9)."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, build_encoding, vectors

from fairseq_posenc.positions import Positions

# k = 2, i - j from -8 to 8
ROWS = {
    1: [*[-2] * 7, -1, 0, 1, *[2] * 7],
    2: [*[-2] * 6, -1, -1, 0, 1, 1, *[2] * 6],
    3: [*[-2] * 5, -1, -1, -1, 0, 1, 1, 1, *[2] * 5],
}
FLOORS = {
    1: ROWS[1],
    2: [*[-2] * 6, -1, -1, 0, 0, 1, 1, *[2] * 5],
    3: [*[-2] * 5, -1, -1, -1, 0, 0, 0, 1, 1, 1, *[2] * 3],
}


@pytest.mark.parametrize("queries", [17, 9, 1])
@pytest.mark.parametrize("index", [1, 2, 3])
@pytest.mark.parametrize(("rounding", "golden"), [("ceil", ROWS), ("floor_eq9", FLOORS)])
def test_rows(rounding: str, golden: dict[int, list[int]], index: int, queries: int) -> None:
    """The row for i - j = x holds the number x, which the logits then contain."""
    pos = build_encoding("lfhc", f"clip=2,rounding={rounding}", layers=3, head_dim=1, n=17)
    pos.members["lfhc"].weight.copy_(torch.arange(2.0, -3, -1)[:, None])
    where = Positions(queries, 17, CPU)
    call = pos.layer(index).at(where, pos.per_layer(where)[index - 1])
    actual = call.additive(vectors([1], queries), vectors([0], 17))[0, 0]
    for x, expected in zip(range(-8, 9), golden[index], strict=True):
        assert set(actual[where.delta == -x].tolist()) <= {expected}, x


def test_one_position_has_one_row() -> None:
    """With n = 1 the default k is n - 1 = 0, as in Shaw; the option clip must be at least 1."""
    pos, where = build_encoding("lfhc", layers=2, n=1), Positions(1, 1, CPU)
    weight = pos.members["lfhc"].weight
    assert weight.shape == (2, 1, 1, 2)
    call = pos.layer(2).at(where, pos.per_layer(where)[1])
    actual = call.additive(vectors([1, 2], 1), vectors([0, 0], 1))
    torch.testing.assert_close(actual.flatten(), (weight[1, 0] @ torch.tensor([1.0, 2.0]).double()) / 2**0.5)
