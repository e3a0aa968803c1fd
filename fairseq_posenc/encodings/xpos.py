"""Implement xPos, which is RoPE with pairs that also decay with the distance (Sun et al. 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core import rotary
from ..core.base import RELATIVE, Facts, Layer, StackShape
from ..core.options import option
from ..core.refusal import InputError
from ..positions import Positions

#: The gamma of the paper and of the released code. At the distance scale_base, the product of the fastest pair has
#: decayed to gamma / (1 + gamma).
GAMMA = 0.4


@dataclass(frozen=True)
class XPosOptions(rotary.RotaryOptions):
    """Define the options of xPos."""

    scale_base: float = option(
        512.0,
        "Distance at which the part of q.k that comes from pair m has decayed by the factor (2m/D + 0.4) / 1.4.",
        between=(1, 1e9),
        example=64.0,
    )


class XPos(rotary.Rotary):
    """xPos is RoPE in which pair m decays with the distance, by zeta_m^((i-j)/512) for zeta_m = (2m/D + 0.4) / 1.4.

    xPos works in decoders only, because for keys to the right the factors would grow with the distance. The number 512
    is the default of the option `scale_base`. A query at position p is multiplied by zeta^(p/512), and a key at
    position p by the inverse of this factor. The position p is counted from a column in the middle, so that both
    factors fit in half precision; the choice of this column cancels in the product. The middle column does not depend
    on the sequence length, because keys in a cache must not change. The released code instead counts from the middle of
    the current sequence.
    """

    Options = XPosOptions
    facts = Facts(
        title="xPos: rotary with decay",
        family="rotary",
        paper="Sun et al. 2023 (A length-extrapolatable Transformer)",
        equation="Algorithm 1",
        formula=r"e_{ij} = \frac{1}{\sqrt{D}} \sum_m \zeta_m^{(i-j)/512} (R_i q_i)_m \cdot (R_j k_j)_m",
    )
    options: XPosOptions

    def __init__(self, options: XPosOptions, stack: StackShape) -> None:
        super().__init__(options, stack, stack.head_dim)
        # The limit keeps the factors of the first column within the range of float16, even if n is large.
        self.middle = min(stack.max_length // 2, int(4 * options.scale_base))

    capabilities = replace(RELATIVE, bidirectional=False)

    def turns(self, length: int) -> tuple[Tensor, ...]:
        real, imaginary = super().turns(length)
        zeta = (torch.arange(0, self.features, 2, dtype=torch.float64) / self.features + GAMMA) / (1 + GAMMA)
        power = (torch.arange(length, dtype=torch.float64) - self.middle) / self.options.scale_base
        decay = zeta ** power[:, None]  # [length, D/2]
        return real * decay, imaginary * decay, real / decay, imaginary / decay

    def project_q(self, q: Tensor, positions: Positions, layer: Layer) -> Tensor:
        self._refuse_overflow(q.dtype, positions.extent)
        return super().project_q(q, positions, layer)

    def _refuse_overflow(self, dtype: torch.dtype, length: int) -> None:
        """Raise ValueError if a decay factor exceeds the square root of the largest number that the dtype holds.

        With this limit, half of the range of exponents remains for the queries and keys.
        """
        most = math.log(torch.finfo(dtype).max) / 2 / math.log((1 + GAMMA) / GAMMA)
        if max(length - self.middle, self.middle) > most * self.options.scale_base:
            raise InputError(
                f"xpos: with {length} positions, the decay factors leave the range of {dtype}: use --bf16 or float32, "
                f"or raise scale_base={self.options.scale_base}"
            )

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        pairs = torch.arange(q.shape[-1] // 2, dtype=torch.float64)
        distance = -positions.delta[..., None].double()  # i - j
        theta = self.options.base ** (-2 * pairs / q.shape[-1])
        zeta = (2 * pairs / q.shape[-1] + 0.4) / 1.4
        turns = torch.exp(1j * distance * theta) * zeta ** (distance / self.options.scale_base)
        return self.literal_product(q, k, turns) / self.stack.head_dim**0.5
