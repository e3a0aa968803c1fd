"""Implement Raffel as the M4M papers define it: one scalar per distance, which is divided by sqrt(D)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import tables
from ..core.base import Facts, Layer, StackShape
from ..core.options import Options
from ..core.relative import DistanceScalars
from ..positions import Positions


@dataclass(frozen=True)
class RaffelOptions(Options):
    """Define the options of Raffel."""

    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("zeros")
    init_std: float | None = tables.init_std_option()


class Raffel(DistanceScalars):
    """Raffel adds one scalar per distance before the division: e_ij = (q_i·k_j + a_ij) / sqrt(D), a_ij = w[j - i].

    There are no buckets, and distances are not clipped within n; distances beyond n use the scalar of n - 1. The table
    starts at zeros, so training starts from the model without positions.
    """

    Options = RaffelOptions
    facts = Facts(
        title="Raffel: relative scalars",
        family="biases",
        paper="Raffel et al. 2020, in the variant of Huang et al., M4M (arXiv)",
        equation="equation (10)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j + a_{ij}}{\sqrt{D}},\quad a_{ij} = w_{j-i}",
        count="m (2n-1)",
    )
    options: RaffelOptions

    @classmethod
    def clip_of(cls, options: RaffelOptions, stack: StackShape) -> int:
        return tables.clip_of(None, stack)

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        return super().by_distance(tensors, distances) * self.stack.head_dim**-0.5

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        a = self.literal(positions, layer)
        return (torch.einsum("bhid,bhjd->bhij", q, k) + a) / self.stack.head_dim**0.5
