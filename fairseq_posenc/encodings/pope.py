"""Implement PoPE, polar coordinates: features of queries and keys are lengths, positions are angles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core import tables
from ..core.base import Cost, Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.rotary import Rotary
from ..ops.precision import promoted
from ..positions import Positions


@dataclass(frozen=True)
class PopeOptions(Options):
    """Define the options of PoPE."""

    base: float = option(
        10000.0,
        "Base of the angles: feature c of the D features of a head turns by position * base^(-c/D) radians.",
        between=(1.001, 1e12),
        example=100.0,
    )
    share: str = tables.share_option("none")
    phases: str = option(
        "zeros",
        "Initial phases: 0 for all features (zeros), or drawn evenly from -2 pi to 0 (uniform).",
        choices=("zeros", "uniform"),
    )


class Pope(Rotary):
    """PoPE turns each feature by the distance: e_ij = sum_c s(q_ic) s(k_jc) cos((j - i) w_c + p_c) / sqrt(D).

    s(x) = log(1 + exp(x)) makes each feature a length, so content decides how much a feature counts, and the distance
    decides the angle. RoPE also lets the content change the angle, by the ratio of the two features of a pair.

    - Index: the angle grows with j - i. The D features of a head have D speeds w_c = base^(-c/D), c = 0 to D - 1, twice
      as many as in RoPE, from 1 to almost 1/base.
    - Parameters: a phase p_c for each feature of each layer and head (`share`), m d numbers. Phases outside of -2 pi to
      0 count as the nearer end, as in the authors' code. They start at 0, or spread evenly (`phases=uniform`). At the
      phase 0, keys at the same distance on both sides have the same angle, and an encoder learns slowly to distinguish
      left from right: in encoders, set `phases=uniform`.
    - Queries and keys become vectors of 2 D numbers, s(q) cos and s(q) sin, whose product is the sum above. The
      attention path stays the same, but a cache of keys is twice as wide. The logits are divided by sqrt(D), not by
      sqrt(2 D).
    - Only distances count, so memory, padding, documents and own positions work as with RoPE.

    Golden values for D = 1, q = k = 0, so s = log 2: the logits at the distances j - i = 0, 1 and -1 are 0.480453,
    0.259590 and 0.259590 with the phase 0, and 0, 0.404287 and -0.404287 with the phase -pi/2.
    """

    Options = PopeOptions
    facts = Facts(
        title="PoPE: polar coordinates",
        family="rotary",
        paper="Gopalakrishnan et al. 2025 (Decoupling the 'what' and 'where' with polar coordinate positional "
        "embeddings)",
        equation="the definition of PoPE's attention score",
        formula=r"e_{ij} = \frac{1}{\sqrt{D}} \sum_{c=0}^{D-1} \mathrm{softplus}(q_{ic})\, \mathrm{softplus}(k_{jc}) "
        r"\cos\left((j - i)\, \mathrm{base}^{-c/D} + p_{hc}\right)",
        count="m d",
    )
    options: PopeOptions
    phase: Tensor

    costs = (Cost("mn^2d", "mnd"),)

    def __init__(self, options: PopeOptions, stack: StackShape) -> None:
        super().__init__(options, stack, 2 * stack.head_dim)  # D speeds, as for D pairs of features

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"phase": tables.shape(options.share, stack, stack.head_dim)}

    def reset_parameters(self) -> None:
        """Set all phases to 0, or draw them evenly from -2 pi to 0 (`phases`)."""
        if self.options.phases == "uniform":
            nn.init.uniform_(self.phase, -2 * math.pi, 0)
        else:
            nn.init.zeros_(self.phase)

    def project_q(self, q: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return s(q) cos and s(q) sin of the angles, [B, h, Q, D] -> [B, h, Q, 2D]."""
        cos, sin = self._turns_at(q, positions)
        return _polar(q, cos, sin)

    def project_k(self, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return s(k) cos and s(k) sin of the angles with their phases, [B, h, T, D] -> [B, h, T, 2D]."""
        cos, sin = self._turns_at(k, positions)
        phase = promoted(_clamped(layer.tensors["phase"]))[:, None]  # [h or 1, 1, D]
        of_cos, of_sin = phase.cos(), phase.sin()
        return _polar(k, cos * of_cos - sin * of_sin, sin * of_cos + cos * of_sin)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        width = self.stack.head_dim
        speeds = torch.tensor([self.options.base ** (-c / width) for c in range(width)], dtype=torch.float64)
        phase = _clamped(tables.of_layer(self.phase, layer.rank, self.stack.heads))[:, None, None]
        angles = positions.delta[..., None] * speeds + phase  # [h, Q, K, D]
        lengths = (torch.log1p(x.exp()) for x in (q, k))
        return torch.einsum("bhid,bhjd,hijd->bhij", *lengths, angles.cos()) / width**0.5


def _clamped(phase: Tensor) -> Tensor:
    return phase.clamp(-2 * math.pi, 0)


def _polar(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return softplus(x) times cos and sin, [..., D] -> [..., 2D], in the dtype of x."""
    lengths = F.softplus(promoted(x).contiguous())  # otherwise, torch.compile mistakes the strides of the gradient
    return torch.cat([lengths * cos, lengths * sin], -1).to(x.dtype)
