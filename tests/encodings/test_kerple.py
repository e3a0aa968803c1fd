"""Test KERPLE (Chi et al. 2022)."""

from __future__ import annotations

import math

import pytest
import torch
from one_layer import CPU, bias_of, build_encoding, lengths

from fairseq_posenc.positions import Positions

FORMS = {
    "log": lambda p, a, distance: -p * math.log(1 + a * distance),
    "power": lambda p, a, distance: -p * distance**a,
}


def set_to(pos: torch.nn.Module, p: list[float], a: list[float]) -> None:
    member = pos.members["kerple"]
    member.p.copy_(torch.tensor([p]))
    member.a.copy_(torch.tensor([a]))


@pytest.mark.parametrize("form", FORMS)
@lengths
def test_the_penalty_of_each_head(form: str, queries: int, keys: int) -> None:
    pos = build_encoding("kerple", f"form={form}", heads=2)
    p, a = [0.5, 2.0], [0.25, 1.5]
    set_to(pos, p, a)
    where = Positions(queries, keys, CPU, causal=True)
    expected = [[[FORMS[form](p[h], a[h], abs(int(x))) for x in row] for row in where.delta] for h in range(2)]
    torch.testing.assert_close(bias_of(pos, where)[0], torch.tensor(expected).double(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("form", "p", "a", "penalty"),
    [
        ("log", -3.0, 1.0, 0.01 * math.log(6)),
        ("log", 1.0, -3.0, math.log(1.05)),
        ("power", -3.0, 1.0, 0.05),
        ("power", 1.0, -3.0, 5**0.01),
        ("power", 1.0, 7.0, 25.0),
    ],
)
def test_parameters_act_within_their_bounds_and_can_come_back(form: str, p: float, a: float, penalty: float) -> None:
    pos = build_encoding("kerple", f"form={form}")
    set_to(pos, [p], [a])
    pos.train().requires_grad_(True)
    at_five = bias_of(pos, Positions(1, 6, CPU, causal=True))[0, 0, 0, 0]
    assert at_five.item() == pytest.approx(-penalty, rel=1e-9)
    at_five.backward()
    assert all(parameter.grad.abs() > 0 for parameter in pos.parameters())


def test_the_gradient_is_finite_at_distance_zero() -> None:
    pos = build_encoding("kerple", "form=power").train().requires_grad_(True)
    bias_of(pos, Positions(3, 3, CPU, causal=True)).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in pos.parameters())


@pytest.mark.parametrize(("form", "largest"), [("log", (2, 1)), ("power", (1, 2))])
def test_how_it_starts(form: str, largest: tuple[float, float]) -> None:
    member = build_encoding("kerple", f"form={form},share=none", layers=20, heads=50).members["kerple"]
    for weight, bound in zip((member.p, member.a), largest, strict=True):
        assert 0 <= weight.min() < 0.05 * bound
        assert 0.95 * bound < weight.max() <= bound
        assert weight.mean().item() == pytest.approx(bound / 2, rel=0.1)
