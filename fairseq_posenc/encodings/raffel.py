"""Raffel as the M4M papers define it: one scalar a distance, inside the division by sqrt(D)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..positions import Positions
from . import tables
from .base import Facts, Layer, StackShape
from .options import Options
from .relative_bias import RelativeBias


@dataclass(frozen=True)
class RaffelOptions(Options):
    """Options of Raffel."""

    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("zeros")
    init_std: float | None = tables.init_std_option()


class Raffel(RelativeBias):
    """e_ij = (q_i . k_j + a_ij) / sqrt(D), a_ij = w[j - i] (METHODS.md 2.6). No buckets, no clip.

    Beyond n the distances saturate at n - 1.
    """

    Options = RaffelOptions
    facts = Facts(
        title="Raffel: relative scalars",
        paper="Raffel et al. 2020 as in Huang et al., M4M (arXiv)",
        equation="(6)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j + a_{ij}}{\sqrt{D}},\quad a_{ij} = w_{j-i}",
        count="m (2n-1)",
    )
    options: RaffelOptions

    def __init__(self, options: RaffelOptions, stack: StackShape) -> None:
        super().__init__(options, stack)
        self.clip = tables.clip_of(None, stack)
        self.weight = tables.make(options.share, stack, 2 * self.clip + 1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Zeros: the model starts as one without positions."""
        tables.draw(self.weight, self.options.init, self.options.init_std)

    @classmethod
    def count(cls, options: RaffelOptions, stack: StackShape) -> int:
        return tables.size(options.share, stack, 2 * tables.clip_of(None, stack) + 1)

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        rows = distances.clamp(-self.clip, self.clip) + self.clip
        return tensors["weight"].index_select(-1, rows) * self.stack.head_dim**-0.5

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        table = tables.of_layer(self.weight, layer.index, self.stack.heads)
        a = table[:, positions.delta.clamp(-self.clip, self.clip) + self.clip]  # [h, Q, K]
        return (torch.einsum("bhid,bhjd->bhij", q, k) + a) / self.stack.head_dim**0.5
