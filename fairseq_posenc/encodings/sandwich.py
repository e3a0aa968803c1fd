"""Implement Sandwich, a bias from the inner products of sinusoidal position vectors (Chi et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core.base import RELATIVE, Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.refusal import InputError
from ..core.relative import RelativeBias
from ..positions import Positions


@dataclass(frozen=True)
class SandwichOptions(Options):
    """Define the options of Sandwich."""

    width: int = option(
        128,
        "Width d' of the sinusoidal vectors, an even number, which may differ from the width of the model.",
        between=(2, 4096),
        example=6,
    )


class Sandwich(RelativeBias):
    """Sandwich adds the inner product of the sinusoidal vectors of both positions, divided by a ratio r_h of the head.

    The inner product depends on the distance only: it is the sum over t = 1 to d'/2 of cos((i-j) / 10000^(2t/d')). Head
    h of H heads has the ratio r_h = 8h/H; its slope in ALiBi is 2^(-8h/H). The bias has no parameters and is the same
    in all layers. The bias falls roughly logarithmically with the distance. In an encoder the bias is symmetric, so
    that it does not distinguish left from right.
    """

    Options = SandwichOptions
    facts = Facts(
        title="Sandwich: inner products of sinusoids",
        family="biases",
        paper="Chi et al. 2023 (Sandwich)",
        equation="the temporal bias of Sandwich and its compression ratios",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + \frac{1}{r_h}\left(p_i \cdot p_j - \frac{d'}{2}\right),"
        r"\quad p_i \cdot p_j = \sum_{t=1}^{d'/2} \cos\frac{i-j}{10000^{2t/d'}},\quad r_h = \frac{8h}{H}",
        notes="The largest inner product, d'/2, is subtracted, so that the bias is zero at distance zero, as in "
        "NVIDIA's NeMo. Subtracting d'/2 adds the same number to all logits of a query, and so changes no "
        "attention weight. The authors' code was not available for a comparison. The sum begins with t = 1 "
        "as in the formula, although the sinusoids of Vaswani et al. begin with 10000^0. The default width d' = 128 "
        "is that of the paper; NeMo uses the width of a head.",
    )
    options: SandwichOptions

    like: Tensor

    def __init__(self, options: SandwichOptions, stack: StackShape) -> None:
        if options.width % 2:
            raise InputError(f"width={options.width} must be an even number, because sines and cosines come in pairs")
        super().__init__(options, stack)
        # The module has no parameters, so this empty buffer shows to which dtype and device the module was moved.
        self.register_buffer("like", torch.empty(0), persistent=False)

    capabilities = replace(RELATIVE, directional=False)

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        numbers = torch.arange(1, self.options.width // 2 + 1, dtype=torch.float64, device=distances.device)
        speeds = 10_000.0 ** (-2 * numbers / self.options.width)
        # cos x - 1 = -2 sin^2(x / 2): no digits are lost at small angles.
        products = -2 * (distances[:, None] * speeds / 2).sin().square().sum(-1)
        ratios = self._ratios(torch.float64).to(distances.device)
        return (products / ratios[:, None]).to(torch.promote_types(self.like.dtype, torch.float32))

    def _ratios(self, dtype: torch.dtype) -> Tensor:
        """Return the ratio by which the inner products of each head are divided, [h]."""
        heads = self.stack.heads
        return 8 * torch.arange(1, heads + 1, dtype=dtype) / heads

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        heads, width = self.stack.heads, self.options.width
        ids = torch.arange(positions.key_length) if positions.ids is None else positions.ids
        angles = torch.stack([ids.to(q.dtype) / 10_000 ** (2 * i / width) for i in range(1, width // 2 + 1)], -1)
        p = torch.cat([angles.sin(), angles.cos()], -1)  # [K, d']
        bias = (p @ p.T)[positions.offset :] - width / 2
        by_head = torch.stack([bias / (8 * h / heads) for h in range(1, heads + 1)])
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + by_head
