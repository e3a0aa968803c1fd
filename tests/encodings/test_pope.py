"""Test that PoPE, whose queries and keys are wider than values, uses the fast kernels."""

from __future__ import annotations

import pytest
import torch
from one_layer import CPU, build_encoding
from torch.nn.attention import SDPBackend, sdpa_kernel

from fairseq_posenc.attention import SelfAttention
from fairseq_posenc.positions import Positions


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_flash_kernel_can_compute_pope(causal: bool, padded: bool) -> None:
    pos = build_encoding("pope", head_dim=4, heads=2, causal=causal)
    attention = SelfAttention(8, 2).double().eval()
    attention.use(pos, 1)
    x = torch.randn(2, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]) if padded else None
    where = Positions(5, 5, CPU, causal=causal, padding=padding)
    outputs = {}
    with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # raises if this kernel refuses the shapes
        for path in ("fused", "explicit"):
            attention.path = path
            outputs[path] = attention(x, where, pos.per_layer(where)[0])[0]
    torch.testing.assert_close(outputs["fused"], outputs["explicit"], rtol=0, atol=1e-12)
