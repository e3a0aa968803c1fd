"""Which sentence of a pair a token belongs to: as vectors at the input, or as biases of each head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from ..core import tables
from ..core.base import RELATIVE, Facts, Layer, PositionEncoding, StackShape
from ..core.options import Options, option
from ..core.shared_bias import SharedBias
from ..ops.precision import exact_product, promoted
from ..positions import Positions


def segments_option() -> Any:
    """Return the option `segments`."""
    return option(2, "how many segments there are; they count from 0", example=3)


def missing(name: str, flag: str) -> str:
    """Return the error of a model that gives no segments to an encoding that needs them, with the cure."""
    return f"{name} needs the segments of sentence pairs, which this model does not give: take {name} out of {flag}"


class Segmented(PositionEncoding):
    """Base of what reads `positions.segments`, which models of pair tasks give.

    Encoders only: segments apply neither in decoding nor in cross-attention. Segments move
    with their tokens, so logits depend neither on where a pair stands nor on left and right.
    """

    needs_segments = True
    name: ClassVar[str]

    def __init__(self, options: Any, stack: StackShape) -> None:
        if options.segments < 2:
            raise ValueError(f"segments={options.segments}: at least 2, or there is nothing to tell apart")
        super().__init__(options, stack)

    capabilities = replace(RELATIVE, causal=False, memory=False, directional=False)

    def check(self, positions: Positions) -> None:
        segments = positions.segments
        if segments is None:
            raise ValueError(missing(self.name, self.stack.name_flag))
        if torch.compiler.is_compiling():  # a graph cannot ask; an index out of range is an error there too
            return
        lowest, highest = (int(bound) for bound in segments.aminmax())
        if lowest < 0:
            raise ValueError(f"{self.name}: segments count from 0, and pads are in one too; the model gave {lowest}")
        if highest >= self.options.segments:
            raise ValueError(
                f"{self.name} knows segments 0 to {self.options.segments - 1}, got {lowest} to {highest}: "
                f"set {self.stack.args_flag} segments={highest + 1}"
            )


@dataclass(frozen=True)
class SegmentsInputOptions(Options):
    """Options of segment vectors."""

    segments: int = segments_option()
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class SegmentsInput(Segmented):
    """x_i = t_i + s_seg(i), one vector [d] a segment (BERT).

    One table at the input: there is nothing to share.
    """

    Options = SegmentsInputOptions
    facts = Facts(
        title="Segments at the input",
        paper="Devlin et al. 2019",
        equation="section 3",
        formula=r"x_i = t_i + s_{S(i)}",
        count="segments d",
    )
    options: SegmentsInputOptions
    name = "segments-input"

    layer_tables = ()  # read at the input only

    @classmethod
    def shapes(cls, options: SegmentsInputOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": (options.segments, stack.dim)}

    def embed(self, x: Tensor, positions: Positions) -> Tensor:
        assert positions.segments is not None
        return x + F.embedding(positions.segments[:, positions.offset :], promoted(self.weight)).to(x.dtype)

    def reference_embed(self, x: Tensor, positions: Positions) -> Tensor:
        assert positions.segments is not None
        segments = positions.segments[:, positions.offset :].tolist()
        return x + torch.stack([torch.stack([self.weight[s] for s in sample]) for sample in segments])


@dataclass(frozen=True)
class SegmentsOptions(Options):
    """Options of segment biases."""

    segments: int = segments_option()
    share: str = tables.share_option("none")
    init: str = tables.init_option("zeros")
    init_std: float | None = tables.init_std_option()


class Segments(Segmented, SharedBias):
    """e_ij = q_i . k_j / sqrt(D) + E_S[S(i), S(j)], a table [segments, segments] a head, undivided.

    DIET's E_S, meant beside `diet-rel` or `diet-abs`; created where pairs are fine-tuned. The paper is silent
    on sharing. With DIET's encodings, `--segments head` shares E_S as the position table is shared.
    Otherwise `share` is an option of each member, which none reads of another, and beside `rope` or `alibi` there is
    no table to follow: `segments.share=layer-wise` says it. The table starts at zeros, so that a
    pre-trained model starts as it was.
    """

    Options = SegmentsOptions
    facts = Facts(
        title="Segments as biases per head",
        paper="Chen et al. 2021 (DIET)",
        equation="(2)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + E^{(h)}_{S(i),S(j)}",
        count="m h segments^2",
    )
    options: SegmentsOptions
    name = "segments"

    @classmethod
    def shapes(cls, options: SegmentsOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, options.segments, options.segments)}

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        """Read a table [h or 1, s, s] for all pairs: [B, h or 1, Q, K].

        By products with rows of 0 and 1, as the gradient of an index into [B, Q, K] is slow; each product
        has one term that is not zero, so nothing is rounded.
        """
        table = tensors["weight"]
        which = positions.shared((self, table.dtype), lambda: self._one_hot(positions).to(table.dtype))  # [B, 1, K, s]
        of_query = exact_product(which[:, :, positions.offset :], table)  # [B, h or 1, Q, s]
        return exact_product(of_query, which.to(of_query.dtype).transpose(-1, -2))

    def _one_hot(self, positions: Positions) -> Tensor:
        assert positions.segments is not None
        return F.one_hot(positions.segments, self.options.segments)[:, None]

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        assert positions.segments is not None
        table = tables.of_layer(self.weight, layer.index, self.stack.heads)
        pairs = [(sample[positions.offset :], sample) for sample in positions.segments]
        e_s = torch.stack([table[:, of_query[:, None], of_key] for of_query, of_key in pairs])
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + e_s
