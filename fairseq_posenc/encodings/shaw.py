"""Relative positions as vectors added to keys (and values): Shaw et al. 2018."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import tables
from ..core.base import Facts, Layer, PositionEncoding, StackShape
from ..core.options import Options, option
from ..ops import toeplitz
from ..positions import Positions


@dataclass(frozen=True)
class ShawOptions(Options):
    """Options of Shaw."""

    clip: int | None = tables.clip_option()
    share: str = tables.share_option("head-wise")
    values: bool = option(False, "a second table, added to the values", example=True)
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class Shaw(PositionEncoding):
    """e_ij = q_i . (k_j + a_ij) / sqrt(D), a_ij = w[clip(j - i, -k, k)] (METHODS.md 2.5).

    With `values`, z_i = sum_j alpha_ij (v_j + a'_ij) from a table of its own. Beyond n the distances
    saturate at k, as everywhere.
    """

    Options = ShawOptions
    facts = Facts(
        title="Shaw: relative vectors on keys",
        paper="Shaw et al. 2018; Huang et al., M4M (arXiv)",
        equation="(7) to (9) of M4M",
        formula=r"e_{ij} = \frac{q_i \cdot (k_j + a_{ij})}{\sqrt{D}},\quad a_{ij} = w_{\mathrm{clip}(j-i,-k,k)}",
        count="m (2k+1) d/h; k = n-1 if unset; twice that with values",
    )
    options: ShawOptions
    reads_keys = False

    def __init__(self, options: ShawOptions, stack: StackShape) -> None:
        super().__init__(options, stack)
        self.clip = tables.clip_of(options.clip, stack)
        rows, dim = 2 * self.clip + 1, stack.head_dim
        self.weight = tables.make(options.share, stack, rows, dim)
        if options.values:
            self.value_weight = tables.make(options.share, stack, rows, dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """N(0, 0.02) unless told otherwise."""
        for weight in self.parameters():
            tables.draw(weight, self.options.init, self.options.init_std)

    @property
    def unused_hooks(self) -> frozenset[str]:
        return frozenset() if self.options.values else frozenset({"values"})

    @classmethod
    def count(cls, options: ShawOptions, stack: StackShape) -> int:
        rows = 2 * tables.clip_of(options.clip, stack) + 1
        return (1 + options.values) * tables.size(options.share, stack, rows, stack.head_dim)

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        rows = tables.rows_of(positions, self.clip)
        scaled = q * self.stack.head_dim**-0.5  # before the product, where there are fewer numbers
        return toeplitz.query_product(scaled, layer.tensors["weight"], positions, rows, self.clip, layer.content)

    def values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor:
        rows = tables.rows_of(positions, self.clip)
        return toeplitz.value_product(weights, layer.tensors["value_weight"], rows)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        keys = k[:, :, None] + self._vectors(self.weight, positions, layer)  # [B, h, Q, K, D]
        return torch.einsum("bhid,bhijd->bhij", q, keys) / self.stack.head_dim**0.5

    def reference_values(self, weights: Tensor, positions: Positions, layer: Layer) -> Tensor | None:
        if not self.options.values:
            return None
        return torch.einsum("bhij,hijd->bhid", weights, self._vectors(self.value_weight, positions, layer))

    def _vectors(self, weight: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """[h, Q, K, D], a_ij written out."""
        table = tables.of_layer(weight, layer.index, self.stack.heads)
        return table[:, positions.delta.clamp(-self.clip, self.clip) + self.clip]
