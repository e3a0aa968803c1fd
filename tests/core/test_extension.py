"""Test tables that are stretched or repeated beyond their length."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.core.extension import Extended
from fairseq_posenc.encodings import StackShape, build


@pytest.mark.parametrize("n", [7, 8])
@pytest.mark.parametrize("extend", ["repeat", "interpolate"])
def test_every_position_has_the_row_of_the_definition(extend: str, n: int) -> None:
    args = f"extend={extend}" + (",extend_to=13" if extend == "interpolate" else "")
    member = build("learned", args, StackShape(1, 1, 4, n)).members["learned"]
    assert isinstance(member, Extended)
    table = torch.arange(n, dtype=torch.float64)[:, None]
    for p in range(13):
        expected = p * (n - 1) / 12 if extend == "interpolate" else p % n
        assert float(member.rows(table, torch.tensor([p]))) == pytest.approx(expected)
        assert float(member.literal_row(table, p)) == pytest.approx(expected)
