"""Implement LFHC, which adds Shaw's vectors to keys, each for a range of distances that is wider in higher layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import tables
from ..core.base import Facts, Layer, StackShape
from ..core.options import N, Options, option
from ..core.relative import RelativeTable
from ..ops import toeplitz
from ..positions import Positions

#: k if the option `clip` is unset (Qu et al. 2021, Table 3: the best k on WikiText-103, which has the longest context).
DEFAULT_CLIP = 16


@dataclass(frozen=True)
class LFHCOptions(Options):
    """Define the options of LFHC."""

    clip: int | None = option(
        None,
        "Number k of table rows per direction (unset: the smaller one of 16 and n - 1). Layer l divides every distance "
        "by l and rounds the result; results larger than k use the row of k.",
        between=(1, N),
        example=2,
    )
    rounding: str = option(
        "ceil",
        "How layer l rounds: |i - j| / l upwards, as in code of the first author (ceil), or (i - j) / l downwards, as "
        "the paper prints in equation (9) (floor_eq9).",
        choices=("ceil", "floor_eq9"),
    )
    share: str = tables.share_option("none")
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class LFHC(RelativeTable):
    """LFHC adds a vector to the keys as `shaw` does, but layer l divides the distances by l.

    The formula is e_ij = q_i·(k_j + w[g_l(j - i)]) / sqrt(D) with g_l(x) = sign(x) min(k, ceil(|x| / l)). Layers are
    counted from 1 in every stack, so the first layer equals `shaw`. With `rounding=floor_eq9`, (i - j) / l is instead
    rounded down for both signs, as the paper prints in equation (9), so that l distances share row 0. The code of the
    first author that rounds up is mt-llm-code (others/rpe_bert.py, for BERT); the repository that the paper names
    (LFHC-GCDF-RPE) is empty.
    """

    Options = LFHCOptions
    facts = Facts(
        title="LFHC: relative vectors on keys, coarser from layer to layer",
        family="relative vectors",
        paper="Qu et al. 2021 (LFHC, GCDF)",
        equation="equations (5) and (9)",
        formula=r"e_{ij} = \frac{q_i \cdot (k_j + w^l_{g_l(j-i)})}{\sqrt{D}},\quad"
        r" g_l(x) = \mathrm{sign}(x)\,\min(k, \lceil |x| / l \rceil)",
        count="m (2k+1) d, where k is `clip`",
    )
    options: LFHCOptions
    reads_keys = False

    @classmethod
    def clip_of(cls, options: LFHCOptions, stack: StackShape) -> int:
        clip = super().clip_of(options, stack)
        return min(DEFAULT_CLIP, clip) if options.clip is None else clip

    def per_layer(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the table of each layer, and the table row of each distance in this layer, `rows` [L]."""
        by_layer = super().per_layer(positions)
        for index, tensors in zip(self.layer_numbers, by_layer, strict=True):
            tensors["rows"] = self.row_in_layer(positions.distances, index)
        return by_layer

    def content_bias(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        scaled = q * self.stack.head_dim**-0.5
        return toeplitz.query_product(scaled, layer.tensors["weight"], positions, layer.tensors["rows"])

    def row_in_layer(self, distances: Tensor, index: int) -> Tensor:
        """Return the table rows of the distances j - i in layer `index`."""
        return self.row_of(coarse(distances, index, self.options.rounding))

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        table = tables.of_layer(self.weight, layer.rank, self.stack.heads)
        settings = layer.index, self.clip, self.options.rounding
        rows = tables.pair_by_pair(positions, lambda delta: self.clip - _literal_row(-delta, *settings))
        keys = k[:, :, None] + table[:, rows]  # [B, h, Q, K, D]
        return torch.einsum("bhid,bhijd->bhij", q, keys) / self.stack.head_dim**0.5


def coarse(distances: Tensor, index: int, rounding: str) -> Tensor:
    """Return (j - i) / l in layer l = `index`, rounded away from zero or, with `rounding=floor_eq9`, upwards."""
    if rounding == "floor_eq9":
        return -torch.div(-distances, index, rounding_mode="floor")
    return distances.sign() * torch.div(distances.abs() + index - 1, index, rounding_mode="floor")


def _literal_row(x: int, index: int, clip: int, rounding: str) -> int:
    """Return clip^l(x, k) for a single number x = i - j, case by case as in equation (9)."""
    if x > clip * index:
        return clip
    if x < -clip * index:
        return -clip
    up = rounding == "ceil" and x > 0
    return -(-x // index) if up else x // index
