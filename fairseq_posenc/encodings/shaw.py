"""Add vectors of relative positions to keys and, optionally, to values (Shaw et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import tables
from ..core.base import Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.relative import RelativeTable
from ..ops import toeplitz
from ..positions import Positions


@dataclass(frozen=True)
class ShawOptions(Options):
    """Define the options of Shaw."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("head-wise")
    values: bool = option(False, "Add vectors of a second table to the values.", example=True)
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class Shaw(RelativeTable):
    """Shaw adds a vector per distance to the keys: e_ij = q_i·(k_j + a_ij) / sqrt(D), a_ij = w[clip(j - i, -k, k)].

    With `values`, vectors a' of a second table are added to the values: z_i = sum_j alpha_ij (v_j + a'_ij).
    """

    Options = ShawOptions
    facts = Facts(
        title="Shaw: relative vectors on keys",
        family="relative vectors",
        paper="Shaw et al. 2018; Huang et al., M4M (arXiv)",
        equation="equations (7) to (9)",
        formula=r"e_{ij} = \frac{q_i \cdot (k_j + a_{ij})}{\sqrt{D}},\quad a_{ij} = w_{\mathrm{clip}(j-i,-k,k)}",
        count="m (2k+1) d/h, where k is `clip` (n-1 if unset). With `values`, the number of parameters is doubled.",
        notes=tables.PER_HEAD,
    )
    options: ShawOptions
    reads_keys = False

    value_weight: Tensor

    @classmethod
    def shapes(cls, options: ShawOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        shapes = super().shapes(options, stack)
        return {**shapes, "value_weight": shapes["weight"]} if options.values else shapes

    @property
    def unused_hooks(self) -> frozenset[str]:
        return frozenset() if self.options.values else frozenset({"values"})

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        scaled = q * self.stack.head_dim**-0.5  # scale q: it is smaller than the product
        return toeplitz.query_product(scaled, layer.tensors["weight"], positions, self.rows(positions))

    def values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return toeplitz.value_product(weights, layer.tensors["value_weight"], positions, self.rows(positions))

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        keys = k[:, :, None] + self.literal(positions, layer)  # [B, h, Q, K, D]
        return torch.einsum("bhid,bhijd->bhij", q, keys) / self.stack.head_dim**0.5

    def reference_values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor | None:
        if not self.options.values:
            return None
        a = tables.of_layer(self.value_weight, layer.rank, self.stack.heads)[:, self.row_of(positions.delta)]
        return torch.einsum("bhij,hijd->bhid", weights, a)
