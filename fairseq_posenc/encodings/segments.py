"""Encode to which sentence of a pair a token belongs, by vectors at the input or by biases of each head."""

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
from ..core.refusal import InputError
from ..core.relative import SharedBias
from ..ops.precision import exact_product, promoted
from ..positions import Positions


def segments_option() -> Any:
    """Return the option `segments`, the number of segments."""
    return option(2, "Number of segments; their ids start at 0.", between=(2, 256), example=3)


def missing(name: str, flag: str) -> str:
    """Return the text of the error about an encoding that needs segments in a model that has none."""
    return f"{name} needs the segments of sentence pairs, which this model does not have: remove {name} from {flag}"


class Segmented(PositionEncoding):
    """Provide the base class of encodings that read `positions.segments`, which models of sentence pairs provide.

    Segment encodings work in encoders only, because segments apply neither in decoding nor in cross-attention. Segments
    move with their tokens, so the logits of two tokens depend neither on their columns nor on which of them is to the
    left.
    """

    needs_segments = True
    uses_positions = False
    name: ClassVar[str]

    capabilities = replace(RELATIVE, causal=False, memory=False, directional=False)

    def check(self, positions: Positions) -> None:
        segments = positions.segments
        if segments is None:
            raise InputError(
                f"{self.name} needs the number of each token's segment, but Positions.segments is None: call "
                f"stack.positions(tokens, ..., segments=...), or remove {self.name} from {self.stack.name_flag}"
            )
        if torch.compiler.is_compiling() or not segments.numel():  # a graph cannot read ids; its operations refuse them
            return
        lowest, highest = (int(bound) for bound in segments.aminmax())
        if lowest < 0:
            raise InputError(
                f"{self.name}: Positions.segments contains {lowest}, but segment ids start at 0: use "
                "ids of at least 0 in all columns, also at padding"
            )
        if highest >= self.options.segments:
            raise InputError(
                f"{self.name} has parameters for the segments 0 to {self.options.segments - 1}, but Positions.segments "
                f"contains {lowest} to {highest}: set {self.stack.args_flag} segments={highest + 1}"
            )


@dataclass(frozen=True)
class SegmentsInputOptions(Options):
    """Define the options of segment vectors."""

    segments: int = segments_option()
    init: str = tables.init_option("normal")
    init_std: float | None = tables.init_std_option()


class SegmentsInput(Segmented):
    """Add a learned vector of the segment to each token: x_i = t_i + s_S(i), where S(i) is the segment (BERT).

    There is one table [segments, d] at the input, so there is no option `share`.
    """

    Options = SegmentsInputOptions
    facts = Facts(
        title="Segments at the input",
        family="segments",
        paper="Devlin et al. 2019",
        equation="section 3",
        formula=r"x_i = t_i + s_{S(i)}",
        count="s d, where s is `segments`",
    )
    options: SegmentsInputOptions
    name = "segments-input"

    layer_tables = ()  # the table is read at the input only

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
    """Define the options of segment biases."""

    segments: int = segments_option()
    share: str = tables.share_option("none")
    init: str = tables.init_option("zeros")
    init_std: float | None = tables.init_std_option()


class Segments(Segmented, SharedBias):
    """Add one scalar per pair of segments and head: e_ij = q_i·k_j / sqrt(D) + E_S[S(i), S(j)].

    DIET calls this bias E_S; it is not divided by sqrt(D). Combine this encoding with `diet-rel` or `diet-abs` when you
    fine-tune a model on sentence pairs. The paper does not say whether layers share E_S. With DIET's encodings,
    `--segments head` shares E_S in the same way as the position table. In other compositions, set the option `share` of
    this encoding, for example `segments.share=layer-wise`. The table E_S starts at zeros, so it does not change a
    pretrained model at first.
    """

    Options = SegmentsOptions
    facts = Facts(
        title="Segments as biases per head",
        family="segments",
        paper="Chen et al. 2021 (DIET)",
        equation="equation (2)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + E^{(h)}_{S(i),S(j)}",
        count="m h s^2, where s is `segments`",
    )
    options: SegmentsOptions
    name = "segments"

    @classmethod
    def shapes(cls, options: SegmentsOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return {"weight": tables.shape(options.share, stack, options.segments, options.segments)}

    def bias_of(self, tensors: Mapping[str, Tensor], positions: Positions) -> Tensor:
        """Return the entry of a table [h or 1, s, s] for each pair of tokens, [B, h or 1, Q, K].

        This function multiplies by one-hot rows, because the gradient of indexing with [B, Q, K] indices is slow.
        Each product has a single non-zero summand, so no rounding errors occur.
        """
        table = tensors["weight"]
        one_hot = positions.shared((self, table.dtype), lambda: self._one_hot(positions).to(table.dtype))  # [B,1,K,s]
        of_query = exact_product(one_hot[:, :, positions.offset :], table)  # [B, h or 1, Q, s]
        return exact_product(of_query, one_hot.to(of_query.dtype).transpose(-1, -2))

    def small(self, part: Mapping[str, Tensor]) -> bool:
        return True

    def _one_hot(self, positions: Positions) -> Tensor:
        assert positions.segments is not None
        return F.one_hot(positions.segments.long(), self.options.segments)[:, None]

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        assert positions.segments is not None
        table = tables.of_layer(self.weight, layer.rank, self.stack.heads)
        pairs = [(sample[positions.offset :], sample) for sample in positions.segments]
        e_s = torch.stack([table[:, of_query[:, None], of_key] for of_query, of_key in pairs])
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + e_s
