"""Implement ALiBi, a penalty that grows linearly with the distance (Press et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..core.base import RELATIVE, Facts, Layer, StackShape
from ..core.options import Options, option
from ..core.refusal import InputError
from ..core.relative import RelativeBias
from ..positions import Positions


@dataclass(frozen=True)
class AlibiOptions(Options):
    """Define the options of ALiBi."""

    heads: int | None = option(
        None,
        "Number of heads with a penalty, the first ones; the others have none (unset: all heads).",
        between=(1, 10_000),
        example=1,
    )


class Alibi(RelativeBias):
    """ALiBi subtracts a fixed slope times the distance: e_ij = q_i·k_j / sqrt(D) - s_h |i - j|.

    Each head h has its own slope s_h. In an encoder the penalty is symmetric, so that it does not distinguish left from
    right.

    With the option `heads`, only the first heads have a penalty, with the slopes of a layer that has only them, as with
    `alibi_num_heads` in x-transformers. The other heads attend without positions.
    """

    Options = AlibiOptions
    facts = Facts(
        title="ALiBi: linear biases",
        family="biases",
        paper="Press et al. 2022",
        equation="section 3",
        formula=r"e_{ij} = \frac{q_i \cdot k_j}{\sqrt{D}} - s_h |i - j|",
    )

    options: AlibiOptions
    like: Tensor

    def __init__(self, options: AlibiOptions, stack: StackShape) -> None:
        if options.heads is not None and options.heads > stack.heads:
            raise InputError(
                f"heads={options.heads} is more than the number of heads, which is {stack.heads}: choose a smaller "
                "number, or leave heads out for a penalty in all heads"
            )
        super().__init__(options, stack)
        # The module has no parameters, so this empty buffer shows to which dtype and device the module was moved.
        self.register_buffer("like", torch.empty(0), persistent=False)

    capabilities = replace(RELATIVE, directional=False)

    @property
    def _slopes(self) -> list[float]:
        """Return the slope of each head, which is 0 in heads without a penalty."""
        heads = self.options.heads or self.stack.heads
        return slopes_of(heads) + [0.0] * (self.stack.heads - heads)

    def by_distance(self, tensors: Mapping[str, Tensor], distances: Tensor) -> Tensor:
        slopes = torch.tensor(self._slopes, dtype=torch.float64, device=distances.device)
        bias = -slopes[:, None] * distances.abs()
        return bias.to(torch.promote_types(self.like.dtype, torch.float32))

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        penalised = slopes_of(self.options.heads or self.stack.heads)
        slopes = torch.tensor(penalised + [0.0] * (self.stack.heads - len(penalised)), dtype=q.dtype)
        penalty = slopes[:, None, None] * positions.delta.abs()
        return torch.einsum("bhid,bhjd->bhij", q, k) / self.stack.head_dim**0.5 - penalty


def slopes_of(heads: int) -> list[float]:
    """Return the slope of each of the h heads: the first h powers of 2^(-8/h).

    If h is not a power of two, the slopes begin with those for the next smaller power of two. The other slopes are the
    first, third, fifth and so on of the slopes for the next larger power of two.
    """
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    if power < heads:
        slopes += slopes_of(2 * power)[0::2][: heads - power]
    return slopes
