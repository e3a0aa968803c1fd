"""Test XL and GCDF, which project a fixed encoding of the distance (Dai et al. 2019; Qu et al. 2021)."""

from __future__ import annotations

import math

import pytest
import torch
from one_layer import CPU, build_encoding, lengths, logits_of, vectors

from fairseq_posenc.positions import Positions

SINES = [0.841471, 0.010000]
COSINES = [0.540302, 0.999950]


def test_rows_are_sinusoids_of_signed_distances() -> None:
    rows = build_encoding("xl", head_dim=4).members["xl"].encode(torch.tensor([1.0, -1.0, 0.0]).double())
    expected = [[*SINES, *COSINES], [-SINES[0], -SINES[1], *COSINES], [0.0, 0.0, 1.0, 1.0]]
    torch.testing.assert_close(rows, torch.tensor(expected).double(), rtol=0, atol=1e-6)


@lengths
@pytest.mark.parametrize("clamp", [None, 2])
def test_a_key_of_a_distance_is_that_of_i_minus_j(queries: int, keys: int, clamp: int | None) -> None:
    """W_r selects the sine and q.k is 0, so the logit is sin(i - j) / sqrt(2)."""
    pos = build_encoding("xl", "" if clamp is None else f"clamp={clamp}")
    pos.members["xl"].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    actual = logits_of(pos, vectors([1, 0], queries), vectors([0, 1], keys), Positions(queries, keys, CPU))[0, 0]

    def within(p: int) -> int:
        return p if clamp is None else max(-clamp, min(clamp, p))

    expected = [[math.sin(within(i - j)) / 2**0.5 for j in range(keys)] for i in range(keys - queries, keys)]
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


@lengths
def test_u_meets_the_key_and_v_the_distance(queries: int, keys: int) -> None:
    """q = (1, 2), k = (3, -1), u = (1, 1), v = (2, 0), r = (0, cos): q.k + u.k + (q+v).r = 1 + 2 + 2 cos(i-j)."""
    pos = build_encoding("xl")
    xl = pos.members["xl"]
    xl.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
    xl.u.copy_(torch.tensor([1.0, 1.0]))
    xl.v.copy_(torch.tensor([2.0, 0.0]))
    where = Positions(queries, keys, CPU)
    actual = logits_of(pos, vectors([1, 2], queries), vectors([3, -1], keys), where)[0, 0]
    torch.testing.assert_close(actual, (3 + 2 * where.delta.double().cos()) / 2**0.5, rtol=0, atol=1e-12)


# -- GCDF -----------------------------------------------------------------------------------------------------------
