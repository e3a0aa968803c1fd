"""Test the initial values of tables, and tables that are stretched or repeated beyond their length."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from fairseq_posenc.core import starts
from fairseq_posenc.core.extension import Extended
from fairseq_posenc.encodings import StackShape, build


@pytest.mark.parametrize(
    ("shape", "fans"),
    [
        ((40, 24), 40 + 24),
        ((2, 40, 24), 1 + 24),  # 80 tables with one row each
        ((2, 3, 40, 24), 40 + 24),
    ],
)
def test_xavier_uniform_has_the_fans_of_one_table(shape: tuple[int, ...], fans: int) -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.zeros(shape))
    starts.draw(weight, "xavier-uniform", None, gain=2.0)
    bound = 2 * math.sqrt(6 / fans)
    assert 0.95 * bound < float(weight.detach().abs().max()) <= bound


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
