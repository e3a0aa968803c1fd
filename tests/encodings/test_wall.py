"""Test Wall attention in several blocks, with gates that are almost closed, and its cache."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from one_layer import CPU, build_encoding
from torch import Tensor

from fairseq_posenc.core.base import Layer
from fairseq_posenc.encodings import Composition, wall
from fairseq_posenc.positions import Positions


def scores_of(pos: Composition, x: Tensor, q: Tensor, k: Tensor, where: Positions) -> Tensor:
    scores = pos.layer(1).at(where, pos.per_layer(where)[0]).with_inputs(x).scores(q, k)
    assert scores is not None
    return scores


def vectors(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize(("queries", "keys"), [(70, 70), (33, 70), (1, 40), (32, 64)])
@pytest.mark.parametrize("bias", [8.0, 0.0, -60.0])
def test_blocks_equal_the_reference(queries: int, keys: int, bias: float) -> None:
    """With the bias -60, the products of the gates of a few tokens are less than the smallest float64."""
    generator = torch.Generator().manual_seed(0)
    pos = build_encoding("wall", heads=2, head_dim=3, causal=True)
    pos.members["wall"].gate_bias.fill_(bias)
    x = vectors(generator, 2, keys, 6)
    q, k = vectors(generator, 2, 2, queries, 3), vectors(generator, 2, 2, keys, 3)
    padding = torch.zeros(2, keys, dtype=torch.bool)
    padding[1, :2] = True
    where = Positions(queries, keys, CPU, causal=True, padding=padding)
    expected = pos.members["wall"].reference(q, k, where, Layer(1, 1, inputs=x))
    earlier = where.delta <= 0
    actual = scores_of(pos, x, q, k, where)
    torch.testing.assert_close(actual * earlier, expected * earlier, rtol=1e-9, atol=1e-12)


def test_almost_closed_gates_have_finite_gradients_in_float32() -> None:
    generator = torch.Generator().manual_seed(1)
    pos = build_encoding("wall", head_dim=4, causal=True, dtype=torch.float32).requires_grad_()
    with torch.no_grad():
        pos.members["wall"].gate_bias.fill_(-50.0)
    where = Positions(80, 80, CPU, causal=True)
    data: dict[str, Any] = {"dtype": torch.float32}
    q, k = (vectors(generator, 1, 1, 80, 4, **data).requires_grad_() for _ in "qk")
    scores = scores_of(pos, vectors(generator, 1, 80, 4, **data), q, k, where)
    scores.square().sum().backward()
    for tensor in (q, k, *pos.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


def test_exponents_above_0_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If exponents may exceed 0, almost closed gates overflow in hidden pairs, so that gradients are NaN."""
    monkeypatch.setattr(wall, "_fading", torch.exp)
    with pytest.raises(AssertionError):
        test_almost_closed_gates_have_finite_gradients_in_float32()


def test_a_decoding_step_computes_one_factor_for_each_key(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    original = wall._fading

    def fading(exponents: Tensor) -> Tensor:
        sizes.append(exponents[..., 0].numel())
        return original(exponents)

    monkeypatch.setattr(wall, "_fading", fading)
    generator = torch.Generator().manual_seed(0)
    pos = build_encoding("wall", head_dim=3, causal=True)
    x, q, k = vectors(generator, 1, 40, 3), vectors(generator, 1, 1, 1, 3), vectors(generator, 1, 1, 40, 3)
    scores_of(pos, x, q, k, Positions(1, 40, CPU, causal=True))
    assert sum(sizes) == 40 + 2  # and one for the query and for its pair with itself
