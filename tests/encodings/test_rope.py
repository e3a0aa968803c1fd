"""Test RoPE's context extensions and partial rotation (Chen et al. 2023, Peng et al. 2023)."""

from __future__ import annotations

import math

import pytest
import torch
from one_layer import CPU, build_encoding, logits_of

from fairseq_posenc.encodings.rope import Rope
from fairseq_posenc.positions import Positions

D = 64


def rope(args: str, *, head_dim: int = D, n: int = 2048) -> Rope:
    encoding = build_encoding("rope", args, head_dim=head_dim, n=n).members["rope"]
    assert isinstance(encoding, Rope)
    return encoding


def test_yarn_by_hand() -> None:
    """With L = 64, base 100 and D = 4, pair 0 turns 10.19 times within L, and pair 1 turns 1.0186 times."""
    speeds = rope("base=100,scaling=yarn,factor=2", head_dim=4, n=64).speeds()
    gamma = torch.tensor([(64 / (2 * math.pi) - 1) / 31, (6.4 / (2 * math.pi) - 1) / 31], dtype=torch.float64)
    torch.testing.assert_close(gamma, torch.tensor([0.296320, 0.000600], dtype=torch.float64), rtol=0, atol=1e-6)
    expected = torch.tensor([1.0, 0.1], dtype=torch.float64) * (1 + gamma) / 2
    torch.testing.assert_close(speeds, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("base", "features", "length", "gamma"),
    [
        # pair_of(32 turns) = 16 ln(512 / 64 pi) / (2 ln 100) = 1.62, and pair_of(1 turn) = 7.64: from pair 1 to pair 8
        (100, 16, 512, [1, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7]),
        # pair_of(32 turns) = 0.13, and pair_of(1 turn) = 10.1, which is limited to R - 1 = 3: from pair 0 to pair 3
        (2, 4, 210, [1, 2 / 3]),
    ],
)
def test_the_released_yarn_by_hand(base: int, features: int, length: int, gamma: list[float]) -> None:
    speeds = rope(f"base={base},scaling=yarn,form=original,factor=2", head_dim=features, n=length).speeds()
    plain = torch.tensor([base ** (-2 * m / features) for m in range(len(gamma))], dtype=torch.float64)
    expected = plain * (1 + torch.tensor(gamma, dtype=torch.float64)) / 2
    torch.testing.assert_close(speeds, expected, rtol=1e-12, atol=0)


def test_yarn_sharpens_all_logits() -> None:
    """1/t = (0.1 ln s + 1)^2 also applies at distance 0 and to the features that are not rotated."""
    where, x = Positions(1, 1, CPU, causal=True), torch.randn(1, 1, 1, 8, dtype=torch.float64)
    for args in ("", ",fraction=0.5"):
        plain = logits_of(build_encoding("rope", f"base=100{args}", head_dim=8), x, x, where)
        sharp = logits_of(build_encoding("rope", f"base=100,scaling=yarn,factor=16{args}", head_dim=8), x, x, where)
        torch.testing.assert_close(sharp, plain * 1.277259**2, rtol=1e-6, atol=0)


def test_yarn_starts_from_the_original_length() -> None:
    by_length = rope("scaling=yarn,factor=4,original_length=512", n=2048).speeds()
    assert torch.equal(by_length, rope("scaling=yarn,factor=4", n=512).speeds())
    assert not torch.equal(by_length, rope("scaling=yarn,factor=4", n=2048).speeds())


@pytest.mark.parametrize(("fraction", "features"), [(1, 64), (0.5, 32), (0.25, 16), (0.3, 18), (0.032, 2)])
def test_a_fraction_is_whole_pairs(fraction: float, features: int) -> None:
    assert rope(f"fraction={fraction}").features == features


@pytest.mark.parametrize(
    ("args", "speeds"),
    [
        ("scaling=ntk,factor=4", [1.0, 0.05, 0.0025]),  # the divisors are 4^(2m/(R - 2)), here 4^(m/2)
        ("proportion=0.67", [1.0, 0.1, 0.0]),
        ("proportion=0.34,scaling=linear,factor=2", [0.5, 0.0, 0.0]),
        ("fraction=0.67", [1.0, 0.0316228]),  # two pairs, at the speeds of a head of four features
    ],
)
def test_speeds_by_hand(args: str, speeds: list[float]) -> None:
    actual = rope(f"base=1000,{args}", head_dim=6, n=64).speeds()
    torch.testing.assert_close(actual, torch.tensor(speeds, dtype=torch.float64), rtol=0, atol=1e-7)
