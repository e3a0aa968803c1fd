"""LAMB: its formula, written out, and its place in fairseq."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from . import masked_lm

pytest.importorskip("pytorch_optimizer")

from fairseq_posenc.optim.lamb import PosEncLamb, PosEncLambConfig


def literally(
    x: Tensor, gradients: list[Tensor], lr: float, betas: tuple[float, float], eps: float, decay: float
) -> Tensor:
    m, v = torch.zeros_like(x), torch.zeros_like(x)
    for g in gradients:
        m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g**2
        r = m / (v.sqrt() + eps) + decay * x
        x = x - lr * min(x.norm().item(), 10.0) / (r.norm() + eps) * r
    return x


@pytest.mark.parametrize("size", [1.0, 50.0])  # below and above the largest norm that counts
@pytest.mark.parametrize("shape", [(5,), (4, 3)])
def test_steps_follow_the_formula(shape: tuple[int, ...], size: float) -> None:
    random = torch.Generator().manual_seed(0)
    start = size * torch.randn(shape, generator=random, dtype=torch.float64)
    gradients = [torch.randn(shape, generator=random, dtype=torch.float64) for _ in range(6)]
    weight = torch.nn.Parameter(start.clone())
    other = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))  # a ratio of its own
    cfg = PosEncLambConfig(lamb_betas="(0.8, 0.95)", lamb_eps=1e-3, weight_decay=0.1, lr=[0.02])
    optimizer = PosEncLamb(cfg, [weight, other])
    for gradient in gradients:
        weight.grad, other.grad = gradient.clone(), torch.ones_like(other)
        optimizer.step()
    expected = literally(start, gradients, 0.02, (0.8, 0.95), 1e-3, 0.1)
    torch.testing.assert_close(weight.detach(), expected, rtol=1e-9, atol=1e-9)


def test_a_model_learns_with_it_and_resumes(tmp_path: Path) -> None:
    data = masked_lm.write_corpus(tmp_path / "data-bin")
    lamb = ["--optimizer", "posenc_lamb", "--lr", "0.02", "--pos-enc", "shaw", "--encoder-embed-dim", "32"]
    whole = masked_lm.train(data, *lamb, "--max-update", 12, "--save-dir", tmp_path / "a").losses
    masked_lm.train(data, *lamb, "--max-update", 6, "--save-dir", tmp_path / "b")
    rest = masked_lm.train(data, *lamb, "--max-update", 12, "--save-dir", tmp_path / "b").losses
    assert rest == whole[6:]
    assert whole[-1] < whole[0]
