"""Multiply the product of query and key by relative scalars (M1, M2) or vectors (M3), as Huang et al. 2020 do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core import tables
from ..core.base import RELATIVE, Facts, Layer, StackShape
from ..core.options import Options
from ..core.relative import RelativeTable
from ..ops import shifting, single_query, toeplitz, trilinear
from ..ops.precision import promoted
from ..positions import Positions

PAPER = "Huang et al. 2020 (M1-M4)"


@dataclass(frozen=True)
class M1Options(Options):
    """Define the options of M1."""

    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("ones")
    init_std: float | None = tables.init_std_option()


@dataclass(frozen=True)
class M2Options(Options):
    """Define the options of M2 and M3."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("head-wise")
    init: str = tables.init_option("ones")
    init_std: float | None = tables.init_std_option()


class _Scalars(RelativeTable):
    """Compute e_ij = (q_i·k_j) a_ij / sqrt(D), where a_ij is one number per distance; this is the base of M1 and M2."""

    no_decay = ("weight",)  # decay would pull ones (plain attention) towards zeros (uniform attention)

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        """Return the factor a_ij for each distance, [1 or h, L]."""
        raise TypeError(f"{type(self).__name__} does not implement the method factors()")

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        factors = self.factors(promoted(layer.tensors["weight"]), positions)
        content = torch.matmul(q * self.stack.head_dim**-0.5, k.transpose(-1, -2))
        return promoted(content) * shifting.to_pairs(factors, positions)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        w = self.literal(positions, layer)
        return torch.einsum("bhid,bhjd->bhij", q, k) * w / self.stack.head_dim**0.5


class M1(_Scalars):
    """M1 multiplies q_i·k_j by one scalar per unsigned distance: e_ij = (q_i·k_j) w[|j - i|] / sqrt(D).

    Distances are not clipped within n; all distances beyond n use the scalar of n - 1. The table starts at ones, so
    training starts exactly from the model without positions. An encoder with M1 cannot distinguish left from right.
    """

    Options = M1Options
    facts = Facts(
        title="M1: multiplied by unsigned relative scalars",
        family="multiplicative",
        paper=PAPER,
        equation="equations (11) and (12)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, w_{|j-i|}}{\sqrt{D}}",
        count="m n, or m h n with `share=none`",
        notes=tables.PER_HEAD,
    )

    capabilities = replace(RELATIVE, directional=False)

    @classmethod
    def clip_of(cls, options: M1Options, stack: StackShape) -> int:
        return tables.clip_of(None, stack)

    @classmethod
    def shapes(cls, options: M1Options, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, stack.max_length)}

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        return weight.index_select(-1, self.row_of(positions.distances))

    def row_of(self, delta: Tensor) -> Tensor:
        return delta.abs().clamp(max=self.clip)


class M2(_Scalars):
    """M2 multiplies q_i·k_j by one scalar per signed distance: e_ij = (q_i·k_j) w[j - i] / sqrt(D).

    The table starts at ones, so training starts exactly from the model without positions.
    """

    Options = M2Options
    facts = Facts(
        title="M2: multiplied by signed relative scalars",
        family="multiplicative",
        paper=PAPER,
        equation="equations (12) and (13)",
        formula=r"e_{ij} = \frac{(q_i \cdot k_j)\, w_{j-i}}{\sqrt{D}}",
        count="m (2k+1), where k is `clip` (n-1 if unset). With `share=none`, the number of parameters is multiplied "
        "by h.",
        notes=tables.PER_HEAD,
    )

    @classmethod
    def shapes(cls, options: M2Options, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, 2 * cls.clip_of(options, stack) + 1)}

    def factors(self, weight: Tensor, positions: Positions) -> Tensor:
        return toeplitz.take(weight, self.rows(positions), -1)


class M3(RelativeTable):
    """M3 multiplies q_i, k_j and a vector of the distance elementwise: e_ij = sum_d q_id k_jd w[j - i]_d / sqrt(D).

    The table starts at ones, so training starts exactly from the model without positions. The sum is not a matrix
    product, so compiled loops compute it if possible (see `trilinear`).
    """

    Options = M2Options
    facts = Facts(
        title="M3: multiplied by signed relative vectors",
        family="multiplicative",
        paper=PAPER,
        equation="equations (14) and (15)",
        formula=r"e_{ij} = \frac{\sum_d q_{id}\, k_{jd}\, a_{ijd}}{\sqrt{D}},\quad a_{ij} = w_{j-i}",
        count="m (2k+1) d/h, where k is `clip` (n-1 if unset). With `share=none`, the number of parameters is "
        "multiplied by h.",
        notes=tables.PER_HEAD,
    )
    no_decay = ("weight",)  # for the same reason as M1 and M2

    def scores(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        # Scale the vectors instead of the queries: the backward pass would need a copy of scaled queries.
        table, rows = promoted(layer.tensors["weight"]) * self.stack.head_dim**-0.5, self.rows(positions)
        if positions.pairs is not None:
            return trilinear.product_of_pairs(q, k, table, toeplitz.rows_of_pairs(positions, rows))
        vectors = toeplitz.by_distance(table, rows)
        if toeplitz.is_single(positions):
            return single_query.of_all_three(k, vectors, q)
        return trilinear.product(q, k, vectors)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        a = self.literal(positions, layer)
        return torch.einsum("bhid,bhjd,hijd->bhij", q, k, a) / self.stack.head_dim**0.5
