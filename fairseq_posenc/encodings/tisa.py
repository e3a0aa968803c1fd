"""Implement TISA, a sum of radial basis functions of the distance (Wennberg and Henter 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..core import tables
from ..core.base import Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.relative import RelativeBias
from ..ops.precision import promoted
from ..positions import Positions

PARAMETERS = ("amplitudes", "sharpness", "centres")


@dataclass(frozen=True)
class TisaOptions(Options):
    """Define the options of TISA."""

    kernels: int = option(5, "Number S of radial basis functions per head.", between=(1, 1024), example=2)
    share: str = tables.share_option("none")


class Tisa(RelativeBias):
    """TISA adds f_h(j - i) to the logits, where f_h(x) = sum_s a_s exp(-|b_s| (x - c_s)^2).

    Each head has S such radial basis functions with an amplitude a, a sharpness b and a centre c; the sign of b has no
    effect. By default each layer has its own functions. With share=layer-wise all layers share the same functions, as
    in the paper's experiments with ALBERT. Far from all centres, f is close to zero, so attention to far keys depends
    on the content alone.
    """

    Options = TisaOptions
    facts = Facts(
        title="TISA: radial basis functions of the distance",
        family="biases",
        paper="Wennberg and Henter 2021 (TISA)",
        equation="section 4 (positional scoring function)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} + \sum_{s=1}^{S} a_s e^{-|b_s| (j - i - c_s)^2}",
        count="3 S m h, where S is `kernels`",
        notes="The initial values are those of the authors' code: a and b from N(0.1, 0.01), c from N(0, 5).",
    )
    options: TisaOptions

    def reset_parameters(self) -> None:
        """Draw a and b from N(0.1, 0.01) and c from N(0, 5)."""
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
        a, b, c = (tables.of_layer(getattr(self, name), layer.rank, heads) for name in PARAMETERS)  # [h, S]
        bias = torch.zeros(())
        for s in range(self.options.kernels):
            x = positions.delta - c[:, s, None, None]  # [h, Q, K]
            bias = bias + a[:, s, None, None] * torch.exp(-b[:, s, None, None].abs() * x * x)
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 + bias
