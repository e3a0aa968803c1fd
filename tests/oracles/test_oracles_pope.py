"""Compare PoPE with x-transformers, with other phases than its initial ones."""

from __future__ import annotations

import pytest
import torch

from fairseq_posenc.attention import Projected
from fairseq_posenc.attention.formula import logits
from fairseq_posenc.encodings import StackShape, build
from fairseq_posenc.positions import Positions

x_transformers = pytest.importorskip("x_transformers.x_transformers")


@pytest.mark.parametrize("base", [10000.0, 100.0])
def test_the_logits_are_those_of_x_transformers(base: float) -> None:
    """x-transformers computes in float32."""
    heads, width, length = 2, 8, 12
    theirs = x_transformers.PolarEmbedding(width, heads, base=base)
    ours = build("pope", {"base": base}, StackShape(1, heads, heads * width, length)).eval()
    generator = torch.Generator().manual_seed(0)
    phases = -7 * torch.rand(heads, width, generator=generator) + 0.5  # some are outside of -2 pi to 0
    q, k = (torch.randn(2, heads, length, width, generator=generator) for _ in "qk")
    with torch.no_grad():
        theirs.learned_bias.copy_(phases[:, None])
        ours.members["pope"].phase.copy_(phases[None])
        angles, shifts = theirs(torch.arange(length))
        polar_q = x_transformers.apply_polar_pos_emb(q, angles)
        polar_k = x_transformers.apply_polar_pos_emb(k, angles + shifts)
        where = Positions(length, length, torch.device("cpu"))
        call = ours.layer(1).at(where, ours.per_layer(where)[0])
        actual = logits(Projected(call.project_q(q), call.project_k(k), k, q, k), call)
    torch.testing.assert_close(actual, polar_q @ polar_k.mT * width**-0.5, rtol=1e-4, atol=1e-5)
