"""Test FoX: gates of padding, precision of the running sums, and the cache of the gates."""

from __future__ import annotations

import torch
from one_layer import CPU, build_encoding
from torch import Tensor

from fairseq_posenc.core.compose import LayerView
from fairseq_posenc.encodings import Composition
from fairseq_posenc.positions import Positions


def call_of(pos: Composition, x: Tensor, positions: Positions) -> LayerView:
    return pos.layer(1).at(positions, pos.per_layer(positions)[0]).with_inputs(x)


def bias_of(pos: Composition, x: Tensor, positions: Positions) -> Tensor:
    bias = call_of(pos, x, positions).additive(torch.empty(0), torch.empty(0))
    assert bias is not None
    return bias[0, 0]


def test_padding_between_tokens_forgets_nothing() -> None:
    """A left-padded segment after a memory has such padding."""
    pos = build_encoding("fox", causal=True)
    x = torch.randn(1, 6, 2, dtype=torch.float64)
    padding = torch.tensor([[False, False, True, True, False, False]])
    real = ~padding[0]
    padded = bias_of(pos, x, Positions(6, 6, CPU, causal=True, padding=padding))
    torch.testing.assert_close(padded[real][:, real], bias_of(pos, x[:, real], Positions(4, 4, CPU, causal=True)))
