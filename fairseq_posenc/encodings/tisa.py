"""TISA: a sum of bells over the distance (Wennberg and Henter 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..core import tables
from ..core.base import Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.relative_bias import RelativeBias
from ..ops.precision import promoted
from ..positions import Positions

PARAMETERS = ("amplitudes", "sharpness", "centres")


@dataclass(frozen=True)
class TisaOptions(Options):
    """Options of TISA."""

    kernels: int = option(5, "S, bells a head", least=1, example=2)
    share: str = tables.share_option("none")


class Tisa(RelativeBias):
    """e_ij = q_i . k_j / sqrt(D) + f_h(j - i), f_h(x) = sum_s a_s exp(-|b_s| (x - c_s)^2).

    S bells a head, each with an amplitude a, a sharpness b and a centre c, of which b counts without its sign. Each
    layer has its own (share=layer-wise is the paper's ALBERT, whose layers share all). Beyond n, and wherever no
    bell reaches, f is zero: far keys are seen by content alone.
    """

    Options = TisaOptions
    facts = Facts(
        title="TISA: radial basis functions of the distance",
        paper="Wennberg and Henter 2021 (TISA)",
        equation="section 4: the positional scoring function",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + \sum_{s=1}^{S} a_s e^{-|b_s| (j - i - c_s)^2}",
        count="3 S m h",
        notes="The start, a and b from N(0.1, 0.01) and c from N(0, 5), is that of the authors' code.",
    )
    options: TisaOptions

    def reset_parameters(self) -> None:
        """a, b ~ N(0.1, 0.01), c ~ N(0, 5)."""
        for name in ("amplitudes", "sharpness"):
            nn.init.normal_(getattr(self, name), 0.1, 0.01)
        nn.init.normal_(self.get_parameter("centres"), 0.0, 5.0)

    @classmethod
    def shapes(cls, options: TisaOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(PARAMETERS, tables.shape(options.share, stack, options.kernels))

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        a, b, c = (promoted(tensors[name]).unsqueeze(-1) for name in PARAMETERS)  # [h or 1, S, 1] each
        return (a * torch.exp(-b.abs() * (distances.to(c.dtype) - c) ** 2)).sum(-2)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        heads = self.stack.heads
        a, b, c = (tables.of_layer(getattr(self, name), layer.index, heads) for name in PARAMETERS)  # [h, S]
        bias = torch.zeros(())
        for s in range(self.options.kernels):
            x = positions.delta - c[:, s, None, None]  # [h, Q, K]
            bias = bias + a[:, s, None, None] * torch.exp(-b[:, s, None, None].abs() * x * x)
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + bias
