"""CoPE (Golovneva et al. 2024)."""

from __future__ import annotations

import math

import pytest
import torch
from modern import CPU, count_at_base, logits_of, made, refused

from fairseq_posenc.encodings import Composition
from fairseq_posenc.positions import Positions

GATE = 1 / (1 + math.exp(-0.5))  # q = (1, 0, 0, 0) = k at D = 4: sigmoid(1 / 2)


def counting(args: str = "", rows: int = 8) -> Composition:
    """e[p] = p along the first feature, so that q.e[p] is p itself."""
    pos = made("cope", args, n=rows)
    pos.members["cope"].weight.zero_()[..., 0] = torch.arange(pos.members["cope"].weight.shape[2])
    return pos


def units(length: int) -> torch.Tensor:
    x = torch.zeros(1, 1, length, 4, dtype=torch.float64)
    x[..., 0] = 1
    return x


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (2, 5), (1, 5)])
def test_equal_contents_are_counted_in_equal_steps(queries: int, keys: int) -> None:
    """The logit is 1/2 for the content and (i - j + 1) gates for the position; nothing divides the latter."""
    where = Positions(queries, keys, CPU, causal=True)
    found = logits_of(counting(), units(queries), units(keys), where)[0, 0]
    distance = -where.delta.double()
    expected = torch.where(distance >= 0, 0.5 + (distance + 1) * GATE, 0.5)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_counts_end_at_n_max() -> None:
    where = Positions(1, 8, CPU, causal=True)
    found = logits_of(counting("n_max=4"), units(1), units(8), where)[0, 0, 0] - 0.5
    expected = [min(steps * GATE, 3.0) for steps in range(8, 0, -1)]
    torch.testing.assert_close(found, torch.tensor(expected).double(), rtol=0, atol=1e-6)


def test_only_keys_that_may_be_seen_are_counted() -> None:
    """Later keys, pads and what is beyond a span have no gate."""
    padding = torch.tensor([[False, True, False, False, False]])
    pos, x = counting(), units(5)
    found = logits_of(pos, x, x, Positions(5, 5, CPU, causal=True, padding=padding))[0, 0] - 0.5
    torch.testing.assert_close(found[3, [0, 2, 3]], GATE * torch.tensor([3.0, 2, 1]).double(), rtol=0, atol=1e-12)
    found = logits_of(pos, x, x, Positions(5, 5, CPU, causal=True, span=2))[0, 0] - 0.5
    torch.testing.assert_close(found[4, 3:], GATE * torch.tensor([2.0, 1]).double(), rtol=0, atol=1e-12)


def test_what_opens_no_gate_is_not_counted() -> None:
    """Positions are counts of what the query cares for: keys of a large negative product do not count."""
    k = units(5) * torch.tensor([1.0, -200, -200, 1, 1])[:, None]
    found = logits_of(counting(), units(1), k, Positions(1, 5, CPU, causal=True))[0, 0, 0] - k[0, 0, :, 0] / 2
    torch.testing.assert_close(found, GATE * torch.tensor([3.0, 2, 2, 2, 1]).double(), rtol=0, atol=1e-12)


def test_it_starts_as_the_model_without_positions_and_learns() -> None:
    pos = made("cope").train().requires_grad_(True)
    x, where = units(5), Positions(5, 5, CPU, causal=True)
    found = logits_of(pos, x, x, where)
    torch.testing.assert_close(found, torch.full_like(found, 0.5), rtol=0, atol=1e-12)
    found.tril().sum().backward()
    assert pos.members["cope"].weight.grad.abs().max() > 0


COUNTS = [("", 393_216), ("n_max=64", 49_152), ("share=none", 4_718_592), ("share=layer-wise", 393_216)]


@pytest.mark.parametrize(("args", "count"), [*COUNTS, ("share=all", 32_768)])
def test_counts(args: str, count: int) -> None:
    """m n_max d/h: 12 tables of 512 vectors of 64."""
    assert count_at_base("cope", args) == count


def test_refusals() -> None:
    refused("cope", "", "decoders only", causal=False)
    refused("cope", "n_max=1", "n_max=1", "two positions")
