"""Huang et al. 2020: the product of query and key, multiplied by relative scalars (M1, M2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..positions import Positions
from . import tables, toeplitz
from .base import RELATIVE, Capabilities, Facts, Layer, StackShape
from .options import Options
from .precision import promoted
from .relative_table import RelativeTable

PAPER = "Huang et al. 2020 (M1-M4)"


@dataclass(frozen=True)
class M1Options(Options):
    """Options of M1."""

    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("ones")
    init_std: float | None = tables.init_std_option()


@dataclass(frozen=True)
class M2Options(Options):
    """Options of M2."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("ones")
    init_std: float | None = tables.init_std_option()


class _Scalars(RelativeTable):
    """e_ij = (q_i . k_j) a_ij / sqrt(D), a_ij one number a distance."""

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        """[1 or h, L], the number at each distance."""
        raise TypeError(f"{type(self).__name__} does not say its factor at a distance")

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        factors = promoted(self.factors(layer.tensors["weight"], positions))
        content = torch.matmul(q * self.stack.head_dim**-0.5, k.transpose(-1, -2))
        return promoted(content) * toeplitz.spread(factors, positions)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        w = self.literal(positions, layer)
        return torch.einsum("bhid,bhjd->bhij", q, k) * w / self.stack.head_dim**0.5


class M1(_Scalars):
    """e_ij = (q_i . k_j) w[|j - i|] / sqrt(D), one scalar an unsigned distance (METHODS.md 2.8).

    Not clipped; beyond n it saturates at n - 1, as everywhere. Starts at ones: exactly the model without
    positions. In an encoder left and right cannot be told apart.
    """

    Options = M1Options
    facts = Facts(
        title="M1: multiplied by unsigned relative scalars",
        paper=PAPER,
        equation="(11), (12)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, w_{|j-i|}}{\sqrt{D}}",
        count="m n (the paper: m h n, without sharing)",
    )

    @property
    def capabilities(self) -> Capabilities:
        return replace(RELATIVE, directional=False)

    @classmethod
    def clip_of(cls, options: M1Options, stack: StackShape) -> int:
        return tables.clip_of(None, stack)

    @classmethod
    def shapes(cls, options: M1Options, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": (stack.max_length,)}

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        return weight.index_select(-1, self.row_of(positions.distances))

    def row_of(self, delta: Tensor) -> Tensor:
        return delta.abs().clamp(max=self.clip)


class M2(_Scalars):
    """e_ij = (q_i . k_j) w[j - i] / sqrt(D), one scalar a signed distance (METHODS.md 2.9).

    Starts at ones: exactly the model without positions.
    """

    Options = M2Options
    facts = Facts(
        title="M2: multiplied by signed relative scalars",
        paper=PAPER,
        equation="(12), (13)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, w_{j-i}}{\sqrt{D}}",
        count="m (2k+1); k = n-1 if unset",
    )

    @classmethod
    def shapes(cls, options: M2Options, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": (2 * cls.clip_of(options, stack) + 1,)}

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        return toeplitz.take(weight, self.rows(positions), -1)
