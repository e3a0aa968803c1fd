"""Implement T5's relative bias: one scalar per bucket of distances and head, shared by the layers of a stack."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core import tables
from ..core.base import RELATIVE, Capabilities, Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.refusal import InputError
from ..core.relative import RelativeBias
from ..ops.precision import promoted
from ..positions import Positions


@dataclass(frozen=True)
class T5Options(Options):
    """Define the options of T5."""

    buckets: int = option(32, "Number of buckets into which the distances are sorted.", between=(2, 4096), example=8)
    max_distance: int = option(
        128, "Distances of at least this value share the last bucket.", between=(2, 10_000_000), example=16
    )
    content_scale: str = option(
        "head",
        "Divide q.k by sqrt(D), as BERT does (head), or do not divide it (one). T5 does not divide q.k, but "
        "initialises the query projection with smaller weights.",
        choices=("head", "one"),
    )
    share: str = tables.share_option("layer-wise")
    init: str = tables.init_option("zeros")
    init_std: float | None = tables.init_std_option()


class T5(RelativeBias):
    """T5 adds one scalar per bucket of distances: e_ij = q_i·k_j / sqrt(D) + b[bucket(j - i)].

    The scalars are not divided by sqrt(D). In an encoder each direction has half of the buckets; in a decoder all
    buckets are for keys on the left. The table starts at zeros, so training starts from the model without positions. T5
    itself draws the table from N(0, d^-0.5).
    """

    Options = T5Options
    facts = Facts(
        title="T5: bucketed relative bias",
        family="biases",
        paper="Raffel et al. 2020",
        equation="section 2.1 and the released code",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + b^{(h)}_{\mathrm{bucket}(j-i)}",
        count="b h, where b is `buckets` (32 by default). With `share=none`, the number of parameters is multiplied "
        "by m.",
    )
    options: T5Options

    def __init__(self, options: T5Options, stack: StackShape) -> None:
        _check_buckets(options, stack)
        super().__init__(options, stack)

    @property
    def capabilities(self) -> Capabilities:
        return replace(RELATIVE, bidirectional=not self.stack.causal)

    @property
    def scale(self) -> float | None:
        return 1.0 if self.options.content_scale == "one" else None

    @classmethod
    def shapes(cls, options: T5Options, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, options.buckets)}

    def parts(self, positions: Positions) -> list[dict[str, Tensor]]:
        """Return the tensors that `RelativeBias.parts` returns, plus the distances' buckets if each layer has its own
        table."""
        by_layer = super().parts(positions)
        if not self.same_in_all_layers:
            buckets = self._buckets(positions.distances)
            for tensors in by_layer:
                tensors["buckets"] = buckets
        return by_layer

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        buckets = tensors["buckets"] if "buckets" in tensors else self._buckets(distances)
        return promoted(tensors["weight"]).index_select(-1, buckets)

    def _buckets(self, distances: Tensor) -> Tensor:
        return bucket(distances, self.options.buckets, self.options.max_distance, not self.stack.causal)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        table = tables.of_layer(self.weight, layer.rank, self.stack.heads)
        settings = self.options.buckets, self.options.max_distance, not self.stack.causal
        rows = tables.pair_by_pair(positions, lambda delta: literal_bucket(delta, *settings))
        content = torch.einsum("bhid,bhjd->bhij", q, k)
        scale = 1.0 if self.options.content_scale == "one" else self.stack.head_dim**-0.5
        return content * scale + table[:, rows]


def bucket(distances: Tensor, buckets: int, max_distance: int, both_directions: bool) -> Tensor:
    """Return T5's bucket of each distance j - i.

    Each small distance has a bucket of its own, larger distances share logarithmic buckets, and all distances from
    `max_distance` on are in the last bucket.
    """
    first = torch.zeros_like(distances)
    if both_directions:
        buckets //= 2
        first = (distances > 0) * buckets
        distance = distances.abs()
    else:
        distance = (-distances).clamp(min=0)
    exact = buckets // 2
    growth = torch.log(distance.clamp(min=1).double() / exact) / math.log(max_distance / exact)
    far = (exact + (growth * (buckets - exact)).long()).clamp(max=buckets - 1)
    return first + torch.where(distance < exact, distance, far)


def literal_bucket(delta: int, buckets: int, max_distance: int, both_directions: bool) -> int:
    """Return the bucket of one distance."""
    first = 0
    if both_directions:
        buckets //= 2
        first = buckets if delta > 0 else 0
        distance = abs(delta)
    else:
        distance = max(-delta, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    growth = math.log(distance / exact) / math.log(max_distance / exact) * (buckets - exact)
    return first + min(exact + int(growth), buckets - 1)


def _check_buckets(options: T5Options, stack: StackShape) -> None:
    least = 2 if stack.causal else 4
    if options.buckets < least or options.buckets % least:
        kind = "a decoder" if stack.causal else "an encoder"
        raise InputError(f"buckets={options.buckets} must be a positive multiple of {least} in {kind}")
    exact = options.buckets // least
    if options.max_distance <= exact:
        raise InputError(
            f"max_distance={options.max_distance} must be greater than {exact}, because with "
            f"buckets={options.buckets} every distance below {exact} has a bucket of its own"
        )
