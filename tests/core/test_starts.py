"""Test the initial values of tables."""

from __future__ import annotations

import math
from types import SimpleNamespace

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


def test_the_table_the_matrices_and_the_norm_start_differently() -> None:
    torch.manual_seed(0)
    encoding = nn.Module()
    for name in ("weight", "key_weight", "norm_weight", "zoom"):
        encoding.register_parameter(name, nn.Parameter(torch.full((100, 100), 5.0)))
    starts.draw_with_matrices(encoding, SimpleNamespace(init="ones", init_std=None), "key_weight")
    values = dict(encoding.named_parameters())
    assert (values["weight"] == 1).all()
    assert float(values["key_weight"].detach().std()) == pytest.approx(0.02, rel=0.05)
    assert (values["norm_weight"] == 1).all()
    assert (values["zoom"] == 0).all()


@pytest.mark.parametrize(("init", "value"), [("ones", 1.0), ("zeros", 0.0)])
def test_a_constant_start(init: str, value: float) -> None:
    weight = nn.Parameter(torch.full((3, 2), 5.0))
    starts.draw(weight, init, None)
    assert (weight == value).all()


def test_a_standard_deviation_without_a_normal_start_is_refused() -> None:
    with pytest.raises(ValueError, match=r"init_std=0\.1 has no effect with init=ones"):
        starts.draw(nn.Parameter(torch.zeros(3, 2)), "ones", 0.1)
