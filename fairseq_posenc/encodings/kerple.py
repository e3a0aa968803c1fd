"""Implement KERPLE, a learned penalty that grows with the distance (Chi et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from ..core import tables
from ..core.base import RELATIVE, Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.relative import RelativeBias
from ..ops.precision import promoted
from ..positions import Positions

#: Lower bound of both parameters and upper bound of the exponent in the power form, as in the released code. With a
#: larger exponent the kernel would not be conditionally positive definite.
LEAST, LARGEST_EXPONENT = 0.01, 2.0


@dataclass(frozen=True)
class KerpleOptions(Options):
    """Define the options of KERPLE."""

    form: str = option(
        "log", "Form of the penalty: p log(1 + a |i - j|) (log) or p |i - j|^a (power).", choices=("log", "power")
    )
    share: str = tables.share_option("layer-wise")


class Kerple(RelativeBias):
    """KERPLE subtracts a learned penalty from the logits: p log(1 + a |i - j|), or p |i - j|^a with a <= 2.

    Each head has one p and one a, both at least 0.01. All layers share p and a by default, because the released code
    gives all layers the same module. In the power form, the released code calls the factor a and the exponent p; here p
    is the factor in both forms. The released code clamps the parameters themselves before each forward pass. This code
    clamps only the values that enter the formula. In this code and in the released code, a parameter at its bound still
    gets a gradient and so can leave the bound again. In an encoder the penalty is symmetric, so that it does not
    distinguish left from right.
    """

    Options = KerpleOptions
    facts = Facts(
        title="KERPLE: kernelised penalty",
        family="biases",
        paper="Chi et al. 2022 (KERPLE)",
        equation="section 4 (logarithmic and power variants)",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} - p_h \log(1 + a_h |i - j|)",
        count="2 h. With `share=none`, the number of parameters is multiplied by m.",
    )
    options: KerpleOptions

    p: Tensor
    a: Tensor

    def reset_parameters(self) -> None:
        """Draw p ~ U(0, 2) and a ~ U(0, 1) in the log form, and p ~ U(0, 1) and a ~ U(0, 2) in the power form."""
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
        p, a = (tables.of_layer(table, layer.rank, heads)[:, None, None] for table in (self.p, self.a))
        distance = positions.delta.abs().to(q.dtype)
        if self.options.form == "log":
            penalty = _clamped(p, 0.01) * torch.log(1 + _clamped(a, 0.01) * distance)
        else:
            penalty = _clamped(p, 0.01) * distance ** _clamped(a, 0.01, 2.0)
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 - penalty


def _clamped(x: Tensor, low: float, high: float | None = None) -> Tensor:
    """Clamp x to its bounds, but pass gradients on as if x were not clamped."""
    return x + (x.clamp(low, high) - x).detach()
