"""Test CoPE (Golovneva et al. 2024)."""

from __future__ import annotations

import math

import torch
from one_layer import CPU, build_encoding, lengths, logits_of, vectors

from fairseq_posenc.encodings import Composition
from fairseq_posenc.positions import Positions

GATE = 1 / (1 + math.exp(-0.5))  # q = (1, 0, 0, 0) = k at D = 4: sigmoid(1 / 2)
UNIT = [1.0, 0, 0, 0]


def counting(args: str = "") -> Composition:
    """Return an encoding with e[p] = p along the first feature, so that q.e[p] is p itself."""
    pos = build_encoding("cope", args, head_dim=4, causal=True)
    pos.members["cope"].weight.zero_()[..., 0] = torch.arange(pos.members["cope"].weight.shape[2])
    return pos


@lengths
def test_equal_contents_are_counted_in_equal_steps(queries: int, keys: int) -> None:
    """The logit is 1/2 for the content plus (i - j + 1) gates for the position, which are not divided."""
    where = Positions(queries, keys, CPU, causal=True)
    actual = logits_of(counting(), vectors(UNIT, queries), vectors(UNIT, keys), where)[0, 0]
    distance = -where.delta.double()
    expected = torch.where(distance >= 0, 0.5 + (distance + 1) * GATE, 0.5)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


def test_counts_end_at_n_max() -> None:
    where = Positions(1, 8, CPU, causal=True)
    actual = logits_of(counting("n_max=4"), vectors(UNIT, 1), vectors(UNIT, 8), where)[0, 0, 0] - 0.5
    expected = [min(steps * GATE, 3.0) for steps in range(8, 0, -1)]
    torch.testing.assert_close(actual, torch.tensor(expected).double(), rtol=0, atol=1e-6)


def test_only_keys_that_may_be_seen_are_counted() -> None:
    """The gates of later keys, of padding and of keys beyond a span are zero."""
    padding = torch.tensor([[False, True, False, False, False]])
    pos, x = counting(), vectors(UNIT, 5)
    actual = logits_of(pos, x, x, Positions(5, 5, CPU, causal=True, padding=padding))[0, 0] - 0.5
    torch.testing.assert_close(actual[3, [0, 2, 3]], GATE * torch.tensor([3.0, 2, 1]).double(), rtol=0, atol=1e-12)
    actual = logits_of(pos, x, x, Positions(5, 5, CPU, causal=True, span=2))[0, 0] - 0.5
    torch.testing.assert_close(actual[4, 3:], GATE * torch.tensor([2.0, 1]).double(), rtol=0, atol=1e-12)


def test_what_opens_no_gate_is_not_counted() -> None:
    """Keys with a large negative product are not counted."""
    k = vectors(UNIT, 5) * torch.tensor([1.0, -200, -200, 1, 1])[:, None]
    actual = logits_of(counting(), vectors(UNIT, 1), k, Positions(1, 5, CPU, causal=True))[0, 0, 0] - k[0, 0, :, 0] / 2
    torch.testing.assert_close(actual, GATE * torch.tensor([3.0, 2, 2, 2, 1]).double(), rtol=0, atol=1e-12)
