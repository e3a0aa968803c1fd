"""Test the initial values of tables."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from fairseq_posenc.core import starts


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


def test_a_standard_deviation_without_a_normal_start_is_refused() -> None:
    with pytest.raises(ValueError, match=r"init_std=0\.1 has no effect with init=ones"):
        starts.draw(nn.Parameter(torch.zeros(3, 2)), "ones", 0.1)
