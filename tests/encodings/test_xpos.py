"""Test xPos (Sun et al. 2023)."""

from __future__ import annotations

import math

import pytest
import torch
from one_layer import CPU, build_encoding, lengths, logits_of

from fairseq_posenc.encodings.xpos import XPos
from fairseq_posenc.positions import Positions


@lengths
@pytest.mark.parametrize("pair", [0, 1])
def test_a_pair_turns_and_decays(pair: int, queries: int, keys: int) -> None:
    """q = k = the first axis of a pair: zeta^((i-j)/512) cos((i-j) speed) / sqrt(D); zeta = 0.2857, 0.6429 at D = 4."""
    x = torch.zeros(1, 1, keys, 4, dtype=torch.float64)
    x[..., 2 * pair] = 1
    where = Positions(queries, keys, CPU, causal=True)
    actual = logits_of(build_encoding("xpos", head_dim=4, causal=True), x[:, :, :queries], x, where)[0, 0]
    distance, zeta = -where.delta.double(), [0.4 / 1.4, 0.9 / 1.4][pair]
    expected = zeta ** (distance / 512) * torch.cos(distance * [1.0, 0.01][pair]) / 2
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def test_the_middle_is_no_part_of_the_formula() -> None:
    """Another n changes the column from which the factors are counted, but not the logits."""
    q, k = torch.randn(2, 1, 1, 7, 8, dtype=torch.float64)
    where = Positions(7, 7, CPU, causal=True)
    near, far = (build_encoding("xpos", head_dim=8, n=n, causal=True) for n in (8, 10**6))
    middles = [member.middle for member in (near.members["xpos"], far.members["xpos"]) if isinstance(member, XPos)]
    assert middles == [4, 2048]
    torch.testing.assert_close(logits_of(near, q, k, where), logits_of(far, q, k, where), rtol=1e-12, atol=1e-12)


def project(dtype: torch.dtype, length: int, n: int = 2048) -> torch.Tensor:
    where = Positions(1, length, CPU, causal=True)
    call = build_encoding("xpos", head_dim=4, n=n, causal=True, dtype=dtype).layer(1).at(where, {})
    x = torch.ones(1, 1, 1, 4, dtype=dtype)
    return torch.cat([call.project_q(x), call.project_k(x)])


@pytest.mark.parametrize("n", [2048, 10**6])
def test_float16_says_where_its_range_ends(n: int) -> None:
    """At a distance of x = 2266 from the middle, zeta^(-x/512) reaches sqrt(65504)."""
    last = min(n // 2, 2048) + int(512 * math.log(65504) / 2 / math.log(3.5))
    assert project(torch.float16, last, n).isfinite().all()
    for dtype in (torch.bfloat16, torch.float32):
        assert project(dtype, last + 1, n).isfinite().all()
    with pytest.raises(ValueError, match=rf"{last + 1} positions.*float16.*--bf16.*scale_base"):
        project(torch.float16, last + 1, n)
