"""KERPLE: a learned penalty that grows with the distance (Chi et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..core import tables
from ..core.base import RELATIVE, Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.relative_bias import RelativeBias
from ..ops.precision import promoted
from ..positions import Positions

#: the released code clamps both parameters from below, and the exponent of the power form from above, where the
#: kernel would no longer be conditionally positive definite
LEAST, LARGEST_EXPONENT = 0.01, 2.0


@dataclass(frozen=True)
class KerpleOptions(Options):
    """Options of KERPLE."""

    form: str = option(
        "log", "the penalty: p log(1 + a |i - j|) (log) or p |i - j|^a (power)", choices=("log", "power")
    )
    share: str = tables.share_option("layer-wise")


class Kerple(RelativeBias):
    """e_ij = q_i . k_j / sqrt(D) - p log(1 + a |i - j|), or - p |i - j|^a with a <= 2.

    p and a: one number each a head, both at least 0.01. The released code hands one module to all layers, so
    layers share them here by default, and calls the power form's factor a and its exponent p; here p is the
    factor in both forms. It clamps the parameters themselves before each forward; here their values are clamped
    and the gradient passes, as it does there, so that none is stuck below its bound. In an encoder the penalty is
    symmetric: left and right cannot be told apart.
    """

    Options = KerpleOptions
    facts = Facts(
        title="KERPLE: kernelised penalty",
        paper="Chi et al. 2022 (KERPLE)",
        equation="section 4: logarithmic and power variants",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} - p_h \log(1 + a_h |i - j|)",
        count="2h a stack, times m where the layers do not share",
    )
    options: KerpleOptions

    p: Tensor
    a: Tensor

    def reset_parameters(self) -> None:
        """p ~ U(0, 2) and a ~ U(0, 1) in the log form; factor ~ U(0, 1) and exponent ~ U(0, 2) in the power form."""
        log = self.options.form == "log"
        nn.init.uniform_(self.p, 0.0, 2.0 if log else 1.0)
        nn.init.uniform_(self.a, 0.0, 1.0 if log else 2.0)

    capabilities = replace(RELATIVE, directional=False)

    @classmethod
    def shapes(cls, options: KerpleOptions, stack: StackShape) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("p", "a"), tables.shape(options.share, stack))

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        p = _clamped(promoted(tensors["p"]), LEAST)[:, None]
        a = promoted(tensors["a"])[:, None]
        distance = distances.abs().to(p.dtype)
        if self.options.form == "log":
            return -p * torch.log1p(_clamped(a, LEAST) * distance)
        return -p * distance ** _clamped(a, LEAST, LARGEST_EXPONENT)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        heads = self.stack.heads
        p, a = (tables.of_layer(table, layer.index, heads)[:, None, None] for table in (self.p, self.a))
        distance = positions.delta.abs().to(q.dtype)
        if self.options.form == "log":
            penalty = _clamped(p, 0.01) * torch.log(1 + _clamped(a, 0.01) * distance)
        else:
            penalty = _clamped(p, 0.01) * distance ** _clamped(a, 0.01, 2.0)
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 - penalty


def _clamped(x: Tensor, low: float, high: float | None = None) -> Tensor:
    """Return x within its bounds, with the gradient of x."""
    return x + (x.clamp(low, high) - x).detach()
