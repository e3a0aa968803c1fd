"""Test PaTH attention by hand, in long sequences, and its cache."""

from __future__ import annotations

import math

import pytest
import torch
from one_layer import CPU, build_encoding, vectors
from torch import Tensor

from fairseq_posenc.core.base import Layer
from fairseq_posenc.encodings import Composition, path
from fairseq_posenc.positions import Positions


def scores_of(pos: Composition, x: Tensor, q: Tensor, k: Tensor, where: Positions) -> Tensor:
    scores = pos.layer(1).at(where, pos.per_layer(where)[0]).with_inputs(x).scores(q, k)
    assert scores is not None
    return scores


@pytest.mark.parametrize("queries", [4, 2, 1])
def test_the_products_by_hand(queries: int) -> None:
    """D = 1, q = k = 1, and 1 - b is 0, 1/2, -1/2 and 1/4. The input is the logit of b / 2 above 0 by 1000."""
    pos = build_encoding("path", "rank=1", head_dim=1, causal=True)
    for name, value in {"down": 1e3, "up": 1.0, "gate": 1.0}.items():
        getattr(pos.members["path"], f"{name}_weight").fill_(value)
    pos.members["path"].gate_bias.fill_(-1000.0)
    x = 1000 + torch.tensor([1.0, 1 / 3, 3.0, 3 / 5], dtype=torch.float64).log()[None, :, None]
    where = Positions(queries, 4, CPU, causal=True)
    actual = scores_of(pos, x, vectors([1], queries), vectors([1], 4), where)[0, 0] * (where.delta <= 0)
    expected = [[1, 0, 0, 0], [1 / 2, 1, 0, 0], [-1 / 4, -1 / 2, 1, 0], [-1 / 16, -1 / 8, 1 / 4, 1]]
    torch.testing.assert_close(actual, torch.tensor(expected[4 - queries :]).double(), rtol=0, atol=1e-9)


def test_two_reflections_are_a_rotation() -> None:
    """With b = 2, w_1 = (1, 0) and w_2 = (cos 0.3, sin 0.3), H_2 H_1 turns k_0 by the angle 0.6."""
    pos = build_encoding("path", "rank=2", head_dim=2, causal=True)
    member = pos.members["path"]
    for table in (member.down_weight, member.up_weight):
        table.copy_(torch.eye(2))
    member.gate_bias.fill_(50.0)
    member.gate_weight.fill_(0.0)
    x = 1e4 * torch.tensor([[0.6, 0.8], [1.0, 0.0], [math.cos(0.3), math.sin(0.3)]], dtype=torch.float64)[None]
    q = torch.eye(2, dtype=torch.float64)[:, None, None]  # two samples, whose queries are the unit vectors
    scores = scores_of(
        pos, x.expand(2, -1, -1), q, vectors([1, 0], 3).expand(2, -1, -1, -1), Positions(1, 3, CPU, causal=True)
    )
    turned = scores[:, 0, 0, 0] * math.sqrt(2)
    torch.testing.assert_close(turned, torch.tensor([math.cos(0.6), math.sin(0.6)]).double(), rtol=0, atol=1e-7)


@pytest.mark.parametrize(("queries", "keys"), [(150, 150), (70, 150), (1, 130), (64, 128)])
@pytest.mark.parametrize("bias", [0.0, 4.0, -60.0])
def test_blocks_equal_the_reference(queries: int, keys: int, bias: float) -> None:
    """The numbers b are near 1, near 2, or less than float32 can add to 1."""
    generator = torch.Generator().manual_seed(0)
    pos = build_encoding("path", heads=2, head_dim=8, causal=True)
    pos.members["path"].gate_bias.fill_(bias)
    x = torch.randn(2, keys, 16, generator=generator, dtype=torch.float64)
    q, k = (torch.randn(2, 2, length, 8, generator=generator, dtype=torch.float64) for length in (queries, keys))
    padding = torch.zeros(2, keys, dtype=torch.bool)
    padding[1, :2] = True
    where = Positions(queries, keys, CPU, causal=True, padding=padding)
    expected = pos.members["path"].reference(q, k, where, Layer(1, 1, inputs=x))
    earlier = where.delta <= 0
    for dtype, tolerance in ((torch.float64, 1e-11), (torch.float32, 1e-4)):
        actual = scores_of(pos.to(dtype), x.to(dtype), q.to(dtype), k.to(dtype), where).double()
        torch.testing.assert_close(actual * earlier, expected * earlier, rtol=0, atol=tolerance)


def test_a_block_that_does_not_move_the_queries_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "BLOCK", 150)
    test_blocks_equal_the_reference(150, 150, 0.0)
    monkeypatch.setattr(path, "BLOCK", 64)
    right = path.exact_product
    monkeypatch.setattr(path, "exact_product", lambda x, y: right(x, y) * (y.shape[-2] != 64 or y.shape[-1] != 8))
    with pytest.raises(AssertionError):
        test_blocks_equal_the_reference(150, 150, 0.0)


def test_gates_near_0_have_finite_gradients_in_float32() -> None:
    pos = build_encoding("path", head_dim=4, causal=True, dtype=torch.float32)
    pos.members["path"].gate_bias.fill_(-200.0)
    q = torch.randn(1, 1, 6, 4)
    scores = scores_of(pos.requires_grad_(), torch.randn(1, 6, 4), q, q, Positions(6, 6, CPU, causal=True))
    scores.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in pos.parameters())


def test_b_is_near_1_at_the_start() -> None:
    """The vector that is kept for each token has the squared length b."""
    pos = build_encoding("path", head_dim=8, heads=2, causal=True)
    x, where = torch.randn(1, 50, 16, dtype=torch.float64), Positions(50, 50, CPU, causal=True)
    vectors_of_tokens = pos.layer(1).at(where, pos.per_layer(where)[0]).project_input(x)["path"]
    b = vectors_of_tokens.square().sum(-1)
    assert 0.7 < b.min() < b.mean() < 1.1
