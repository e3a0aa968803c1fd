"""Implement RoPE, which rotates queries and keys by their positions, with extensions to longer contexts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import rotary
from ..core.base import Facts, Layer, StackShape
from ..core.options import option
from ..core.refusal import InputError
from ..core.rotary_scaling import Scaling, ScalingOptions
from ..positions import Positions


@dataclass(frozen=True)
class RopeOptions(ScalingOptions):
    """Define the options of RoPE."""

    fraction: float = option(
        1.0,
        "Fraction of each head's features that is rotated (GPT-NeoX: 0.25), rounded down to whole pairs. The angles "
        "are computed as for a head that has only the rotated features.",
        between=(0.001, 1),
        example=0.5,
    )
    proportion: float = option(
        1.0,
        "Proportion p of the pairs that are rotated, rounded down to whole pairs. The pairs with the largest angles "
        "are rotated, by the same angles as if all pairs were rotated (p-RoPE; Gemma 4: 0.25).",
        between=(0.001, 1),
        example=0.5,
    )

    def __post_init__(self) -> None:
        if self.fraction < 1 and self.proportion < 1:
            raise InputError(
                f"fraction={self.fraction} and proportion={self.proportion} choose the rotated features in two ways: "
                "set only one of them"
            )
        super().__post_init__()


class Rope(rotary.Rotary):
    """RoPE rotates queries and keys: e_ij = (R_i q_i)·(R_j k_j) / sqrt(D).

    R_p rotates each pair m of features by the angle p base^(-2m/D). A model that was trained with one `layout` works
    with the other `layout` only if its projections are permuted.

    Two options rotate only a part of each head, with different pairs and angles:

    - fraction (GPT-NeoX): the first R = fraction D features form R/2 pairs, and pair m is rotated by p base^(-2m/R).
      With `fraction`, the smallest angle is almost as small as in a head that is rotated as a whole. The last D - R
      features are not changed.
    - proportion (p-RoPE, Barbero et al. 2024; 'proportional' in Hugging Face's Gemma 4): all D features form pairs. The
      pairs m < proportion D/2 are rotated by p base^(-2m/D), which is their angle without this option. The pairs with
      smaller angles are not rotated. With layout=half, the features that are not rotated are the last ones of each
      half.

    The option `scaling` extends a model that was trained on sequences of length L, by the factor s:

    - linear (Chen et al. 2023): use R_(p/s) instead of R_p.
    - ntk (bloc97; Peng et al. 2023, section 3.1): multiply the base by s^(R/(R-2)). The base does not depend on the
      length, unlike in Hugging Face's 'dynamic' variant.
    - yarn (Peng et al. 2023, sections 3.2 and 3.3): use R_(p/s) for pairs that make less than one turn within L
      positions, R_p for pairs that make more than 32 turns, and a mixture for all pairs in between. Multiply all
      logits by (0.1 ln s + 1)^2.

    YaRN's mixture is linear in the number of turns in the paper, and linear in m in the released code (option `form`).
    YaRN's factor on the logits applies to all features, as in the paper. Hugging Face instead multiplies the rotated
    features of q and k by the square root of YaRN's factor. With `fraction`, Hugging Face therefore does not scale the
    features that are not rotated.
    """

    Options = RopeOptions
    facts = Facts(
        title="RoPE: rotary",
        family="rotary",
        paper="Su et al. 2021 (RoFormer), equations (16) and (34); Chen et al. 2023 (linear) and Peng et al. 2023 "
        "(ntk, yarn)",
        equation="for the option `scaling`",
        formula=r"e_{ij} = \frac{(R_i q_i) \cdot (R_j k_j)}{\sqrt{D}}",
    )
    options: RopeOptions

    def __init__(self, options: RopeOptions, stack: StackShape) -> None:
        for name in ("fraction", "proportion"):
            if stack.head_dim % 2 == 0 and stack.head_dim * getattr(options, name) < 2:
                raise InputError(
                    f"{name}={getattr(options, name)} of the head width {stack.head_dim} is less than one pair of "
                    f"features: set {name}={2 / stack.head_dim:g} or more"
                )
        features = stack.head_dim if options.fraction == 1 else 2 * int(stack.head_dim * options.fraction / 2)
        super().__init__(options, stack, features)
        self._scaling = Scaling(options, features, stack.max_length)

    @property
    def scale(self) -> float | None:
        if self.options.scaling != "yarn":
            return None
        return float(self.stack.head_dim**-0.5 * self._scaling.attention_factor**2)

    def speeds(self) -> Tensor:
        speeds = self._scaling.scaled(super().speeds())
        speeds[int(len(speeds) * self.options.proportion) :] = 0
        return speeds

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        speeds = torch.tensor([self._literal_speed(m) for m in range(self.features // 2)], dtype=torch.float64)
        turns = torch.exp(-1j * positions.delta[..., None] * speeds)
        root_of_t = 1.0
        if self.options.scaling == "yarn":
            root_of_t = 1 / (0.1 * math.log(self.options.factor or 1) + 1)
        return self.literal_product(q, k, turns) / (root_of_t**2 * self.stack.head_dim**0.5)

    def _literal_speed(self, m: int) -> float:
        """Return theta_m, the rotation angle of pair m per position, as the paper of the chosen scaling defines it."""
        base, count, s = self.options.base, self.features, self.options.factor or 1
        if m + 1 > self.options.proportion * self.stack.head_dim / 2:
            return 0.0
        theta = float(base ** (-2 * m / count))
        if self.options.scaling == "none":
            return theta
        if self.options.scaling == "linear":
            return theta / s
        if self.options.scaling == "ntk":
            return float((base * s ** (count / (count - 2))) ** (-2 * m / count))
        length = self.options.original_length or self.stack.max_length
        gamma = self._literal_gamma(m, length / (2 * math.pi / theta))
        return (1 - gamma) * theta / s + gamma * theta

    def _literal_gamma(self, m: int, rotations: float) -> float:
        if self.options.form == "original":
            return float(self._scaling.gamma_by_pair(self.features // 2)[m])  # tests/oracles compares it with HF
        if rotations < 1:
            return 0.0
        return 1.0 if rotations > 32 else (rotations - 1) / (32 - 1)
