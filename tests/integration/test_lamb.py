"""Compare LAMB with its formula, and test that a resumed training spares vectors; test_resume.py resumes one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("pytorch_optimizer")

from fairseq_posenc.optim.lamb import PosEncLamb, PosEncLambConfig


def literally(
    x: Tensor, gradients: list[Tensor], lr: float, betas: tuple[float, float], eps: float, decay: float
) -> Tensor:
    """Update as Google's code for BERT and ALBERT does: vectors have neither weight decay nor a trust ratio."""
    m, v = torch.zeros_like(x), torch.zeros_like(x)
    for g in gradients:
        m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g**2
        r = m / (v.sqrt() + eps)
        if x.dim() > 1:
            r = r + decay * x
            r = x.norm() / (r.norm() + eps) * r
        x = x - lr * r
    return x


@pytest.mark.parametrize("size", [1.0, 50.0])
def test_steps_follow_the_formula(size: float) -> None:
    random = torch.Generator().manual_seed(0)
    starts = [size * torch.randn(shape, generator=random, dtype=torch.float64) for shape in ((5,), (4, 3), (2, 2, 2))]
    weights = [torch.nn.Parameter(start.clone()) for start in starts]
    gradients = [[torch.randn(p.shape, generator=random, dtype=torch.float64) for _ in range(6)] for p in weights]
    cfg = PosEncLambConfig(lamb_betas="(0.8, 0.95)", lamb_eps=1e-3, weight_decay=0.1, lr=[0.02])
    optimizer = PosEncLamb(cfg, weights)
    for step in range(6):
        for weight, mine in zip(weights, gradients, strict=True):
            weight.grad = mine[step].clone()
        optimizer.step()
    for weight, start, mine in zip(weights, starts, gradients, strict=True):
        expected = literally(start, mine, 0.02, (0.8, 0.95), 1e-3, 0.1)
        torch.testing.assert_close(weight.detach(), expected, rtol=1e-9, atol=1e-9)


def test_a_resumed_training_spares_vectors_too() -> None:
    weights = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))]
    first, second = (PosEncLamb(PosEncLambConfig(lr=[0.1], weight_decay=decay), weights) for decay in (0.3, 0.2))
    second.load_state_dict(first.state_dict(), {"weight_decay": 0.2})
    assert {group["adam"]: group["weight_decay"] for group in second.param_groups} == {True: 0.0, False: 0.2}
