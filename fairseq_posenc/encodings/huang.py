"""Huang et al. 2020, multiplicative: M2 (M1, M3 and M4 belong here too)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..positions import Positions
from . import tables, toeplitz
from .base import Facts, Layer, PositionEncoding, StackShape
from .options import Options
from .precision import promoted


@dataclass(frozen=True)
class M2Options(Options):
    """Options of M2."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("ones")
    init_std: float | None = tables.init_std_option()


class M2(PositionEncoding):
    """e_ij = (q_i . k_j) w[j - i] / sqrt(D), one scalar a signed distance (METHODS.md 2.9).

    Starts at ones: exactly the model without positions.
    """

    Options = M2Options
    facts = Facts(
        title="M2: multiplied by signed relative scalars",
        paper="Huang et al. 2020 (M1-M4)",
        equation="(8)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, w_{j-i}}{\sqrt{D}}",
        count="m (2k+1); k = n-1 if unset",
    )
    options: M2Options

    def __init__(self, options: M2Options, stack: StackShape) -> None:
        super().__init__(options, stack)
        self.clip = tables.clip_of(options.clip, stack)
        self.weight = tables.make(options.share, stack, 2 * self.clip + 1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Ones unless told otherwise."""
        tables.draw(self.weight, self.options.init, self.options.init_std)

    @classmethod
    def count(cls, options: M2Options, stack: StackShape) -> int:
        return tables.size(options.share, stack, 2 * tables.clip_of(options.clip, stack) + 1)

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        rows = toeplitz.rows_of(positions, self.clip)
        factor = toeplitz.take(layer.tensors["weight"], rows, -1)
        content = torch.matmul(q * self.stack.head_dim**-0.5, k.transpose(-1, -2))
        return promoted(content) * toeplitz.spread(promoted(factor), positions)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        table = tables.of_layer(self.weight, layer.index, self.stack.heads)
        w = table[:, positions.delta.clamp(-self.clip, self.clip) + self.clip]  # [h, Q, K]
        return torch.einsum("bhid,bhjd->bhij", q, k) * w / self.stack.head_dim**0.5
