"""Test FoX: gates of padding, precision of the running sums, and the cache of the gates."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, build_encoding, cached_in_steps
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


@pytest.mark.parametrize("autocast", [False, True], ids=["module", "autocast"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_gates_and_sums_are_float32_in_half_precision(dtype: torch.dtype, autocast: bool) -> None:
    """Sums over 2000 tokens reach about 1400; float16 would round them to whole numbers, bfloat16 to multiples of 8."""
    pos = build_encoding("fox", causal=True, n=2000, dtype=torch.float32 if autocast else dtype)
    x = torch.randn(1, 2000, 2, generator=torch.Generator().manual_seed(0)).to(dtype)
    where = Positions(4, 2000, CPU, causal=True)
    with torch.autocast("cpu", dtype, enabled=autocast):
        actual = bias_of(pos, x, where)
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual.double(), bias_of(pos.double(), x.double(), where), rtol=0, atol=2e-3)


def test_the_cache_holds_the_gates_of_all_columns() -> None:
    pos = build_encoding("rope+fox", head_dim=4, heads=2, causal=True)
    x = torch.randn(3, 5, 8, dtype=torch.float64)
    keys, values, cached = cached_in_steps(pos, x)
    gates = call_of(pos, x, Positions(5, 5, CPU, causal=True)).layers["fox"].tensors["project_input"]
    assert keys.shape == values.shape == (3, 2, 5, 4)
    torch.testing.assert_close(cached, gates)
