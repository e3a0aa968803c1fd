"""Test the encodings whose gates read the layer's input, in several blocks and with gates that are almost closed."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, build_encoding, drawn, logits_of

from fairseq_posenc.core.base import Layer
from fairseq_posenc.encodings import path, wall
from fairseq_posenc.positions import Positions


@pytest.mark.parametrize("spec", ["path", "wall"])
@pytest.mark.parametrize(("queries", "keys"), [(150, 150), (70, 150), (33, 70), (1, 130), (64, 128)])
@pytest.mark.parametrize("bias", [8.0, 0.0, -60.0])
def test_blocks_equal_the_reference(spec: str, queries: int, keys: int, bias: float) -> None:
    """PaTH's b are near 2, near 1, or less than float32 can add to 1; Wall's last gates are less than any float64."""
    pos = build_encoding(spec, heads=2, head_dim=8, causal=True)
    member = pos.members[spec]
    member.gate_bias.fill_(bias)
    x = torch.randn(2, keys, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q, k = (tensor.detach() for tensor in drawn(queries, keys, head_dim=8))
    padding = torch.zeros(2, keys, dtype=torch.bool)
    padding[1, :2] = True
    where = Positions(queries, keys, CPU, causal=True, padding=padding)
    expected = member.reference(q, k, where, Layer(1, 1, inputs=x))
    earlier = where.delta <= 0
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-4)):
        data = (tensor.to(dtype) for tensor in (q, k))
        actual = logits_of(pos.to(dtype), *data, where, inputs=x.to(dtype)).double()
        torch.testing.assert_close(actual * earlier, expected * earlier, rtol=0, atol=tolerance)


def test_a_block_that_does_not_move_the_queries_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path, "BLOCK", 150)
    test_blocks_equal_the_reference("path", 150, 150, 0.0)
    monkeypatch.setattr(path, "BLOCK", 64)
    right = path.exact_product
    monkeypatch.setattr(path, "exact_product", lambda x, y: right(x, y) * (y.shape[-2] != 64 or y.shape[-1] != 8))
    with pytest.raises(AssertionError):
        test_blocks_equal_the_reference("path", 150, 150, 0.0)


@pytest.mark.parametrize(("spec", "bias"), [("path", -200.0), ("wall", -50.0)])
def test_almost_closed_gates_have_finite_gradients_in_float32(spec: str, bias: float) -> None:
    pos = build_encoding(spec, head_dim=4, causal=True, dtype=torch.float32)
    pos.members[spec].gate_bias.fill_(bias)
    x, q, k = (torch.randn(shape, requires_grad=True) for shape in ((1, 80, 4), (1, 1, 80, 4), (1, 1, 80, 4)))
    scores = logits_of(pos.requires_grad_(), q, k, Positions(80, 80, CPU, causal=True), inputs=x)
    scores.square().sum().backward()
    for tensor in (x, q, k, *pos.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


def test_exponents_above_0_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If exponents may exceed 0, almost closed gates overflow in hidden pairs, so that gradients are NaN."""
    monkeypatch.setattr(wall, "_fading", torch.exp)
    with pytest.raises(AssertionError):
        test_almost_closed_gates_have_finite_gradients_in_float32("wall", -50.0)
