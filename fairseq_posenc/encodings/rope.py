"""RoPE: queries and keys rotated by their positions (Su et al. 2021), with extensions to longer contexts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import rotary
from ..core.base import Facts, Layer, StackShape
from ..core.options import option
from ..positions import Positions

#: YaRN's alpha and beta (section 3.2, for LLaMA). Pairs that turn less often than SLOW within the original length are
#: interpolated; pairs that turn more often than FAST are not changed.
SLOW, FAST = 1, 32


@dataclass(frozen=True)
class RopeOptions(rotary.RotaryOptions):
    """Define the options of RoPE."""

    fraction: float = option(
        1.0,
        "Fraction of each head's features that is rotated, rounded down to whole pairs (GPT-NeoX: 0.25).",
        example=0.5,
    )
    scaling: str = option(
        "none",
        "How to extend a model to sequences `factor` times longer: divide positions by factor (linear), enlarge the "
        "base (ntk), or divide the angles of slowly turning pairs by up to `factor` and scale the logits (yarn).",
        choices=("none", "yarn", "linear", "ntk"),
    )
    factor: float | None = option(
        None, "Factor s by which sequences become longer; required unless scaling=none.", example=4.0
    )
    original_length: int | None = option(
        None, "Maximum length L of the model before scaling=yarn extends it (unset: n).", least=1, example=8
    )
    form: str = option(
        "paper",
        "Whether the interpolation of scaling=yarn is linear in the number of turns of a pair (paper), or in the "
        "number m of the pair (original, as in the authors' code and in Hugging Face).",
        choices=("paper", "original"),
    )

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction={self.fraction} must be above 0 and up to 1")
        if (self.scaling == "none") != (self.factor is None):
            raise ValueError(
                f"scaling={self.scaling} and factor={self.factor} do not match: set both, "
                "e.g. scaling=linear,factor=2, or neither"
            )
        if self.factor is not None and self.factor <= 1:
            raise ValueError(f"factor={self.factor} must be greater than 1, because scaling is for longer sequences")
        if self.scaling != "yarn" and (self.original_length is not None or self.form != "paper"):
            raise ValueError(f"original_length and form belong to scaling=yarn, not to scaling={self.scaling}")
        super().__post_init__()


class Rope(rotary.Rotary):
    """RoPE rotates queries and keys: e_ij = (R_i q_i)·(R_j k_j) / sqrt(D).

    R_p rotates each pair m of features by the angle p base^(-2m/D). A model that was trained with one `layout` works
    with the other `layout` only if its projections are permuted. With `fraction`, the first R = fraction D features are
    rotated by p base^(-2m/R), and the other features are not changed.

    `scaling` extends a model that was trained on shorter sequences by the factor s:

    - linear (Chen et al. 2023): use R_(p/s) instead of R_p.
    - ntk (bloc97; Peng et al. 2023, section 3.1): multiply the base by s^(R/(R-2)). The base does not depend on the
      length, unlike in Hugging Face's 'dynamic' variant.
    - yarn (Peng et al. 2023, sections 3.2 and 3.3): use R_(p/s) for pairs that turn less than once within L, R_p for
      pairs that turn more than 32 times, and a mixture for the others. Multiply all logits by (0.1 ln s + 1)^2.

    YaRN's mixture is linear in the number of turns in the paper, and linear in m in the released code (option
    `form`). The factor on the logits applies to all features, as in the paper. Hugging Face instead multiplies the
    rotated features of q and k by the square root of this factor. With `fraction`, Hugging Face therefore does not
    scale the features that are not rotated.
    """

    Options = RopeOptions
    facts = Facts(
        title="RoPE: rotary",
        paper="Su et al. 2021; Chen et al. 2023 (linear), Peng et al. 2023 (ntk, yarn)",
        equation="RoFormer's equations (16) and (34)",
        formula=r"e_{ij} = \frac{(R_i q_i) \cdot (R_j k_j)}{\sqrt{D}}",
    )
    options: RopeOptions

    def __init__(self, options: RopeOptions, stack: StackShape) -> None:
        if stack.head_dim % 2 == 0 and stack.head_dim * options.fraction < 2:
            raise ValueError(
                f"fraction={options.fraction} of the head width {stack.head_dim} is less than one pair of features: "
                f"set fraction={2 / stack.head_dim:g} or more"
            )
        features = stack.head_dim if options.fraction == 1 else 2 * int(stack.head_dim * options.fraction / 2)
        super().__init__(options, stack, features)
        if options.scaling == "ntk" and features < 4:
            raise ValueError("scaling=ntk needs two or more rotated pairs of features per head: use scaling=linear")

    @property
    def scale(self) -> float | None:
        if self.options.scaling != "yarn":
            return None
        return float(self.stack.head_dim**-0.5 * self._inverse_temperature)

    @property
    def _inverse_temperature(self) -> float:
        """Return the factor on the logits, which the YaRN paper calls 1/t."""
        assert self.options.factor is not None
        return float((0.1 * math.log(self.options.factor) + 1) ** 2)

    @property
    def _original_length(self) -> int:
        return self.options.original_length or self.stack.max_length

    def speeds(self) -> Tensor:
        plain, factor = super().speeds(), self.options.factor
        if factor is None:
            return plain
        if self.options.scaling == "ntk":
            pairs = torch.arange(len(plain), dtype=torch.float64)
            return plain * factor ** (-2 * pairs / (self.features - 2))
        if self.options.scaling == "linear":
            return plain / factor
        gamma = self._gamma_by_turns(plain) if self.options.form == "paper" else self._gamma_by_pair(len(plain))
        return torch.lerp(plain / factor, plain, gamma)

    def _gamma_by_turns(self, speeds: Tensor) -> Tensor:
        """Return YaRN's gamma, [R/2]: 1 for pairs that keep their speed, 0 for pairs that are slowed down by s."""
        turns = self._original_length * speeds / (2 * math.pi)
        return ((turns - SLOW) / (FAST - SLOW)).clamp(0, 1)

    def _gamma_by_pair(self, pairs: int) -> Tensor:
        """Return gamma as in the released code: linear in m, from 1 at 32 turns within L to 0 at one turn."""

        def pair_of(turns: int) -> float:
            ratio = self._original_length / (turns * 2 * math.pi)
            return self.features * math.log(ratio) / (2 * math.log(self.options.base))

        low, high = max(math.floor(pair_of(FAST)), 0), min(math.ceil(pair_of(SLOW)), self.features - 1)
        width = high - low or 0.001
        return 1 - ((torch.arange(pairs, dtype=torch.float64) - low) / width).clamp(0, 1)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        speeds = torch.tensor([self._literal_speed(m) for m in range(self.features // 2)], dtype=torch.float64)
        product = self.literal_product(q, k, torch.exp(-1j * positions.delta[..., None] * speeds))
        root_of_t = 1.0
        if self.options.scaling == "yarn":
            root_of_t = 1 / (0.1 * math.log(self.options.factor or 1) + 1)
        return product / (root_of_t**2 * self.stack.head_dim**0.5)

    def _literal_speed(self, m: int) -> float:
        """Return the angles theta_m as defined by the paper of the chosen scaling."""
        base, count, s = self.options.base, self.features, self.options.factor or 1.0
        theta = float(base ** (-2 * m / count))
        if self.options.scaling in ("none", "linear"):
            return theta / s
        if self.options.scaling == "ntk":
            return float((base * s ** (count / (count - 2))) ** (-2 * m / count))
        length = self.options.original_length or self.stack.max_length
        gamma = self._literal_gamma(m, length / (2 * math.pi / theta))
        return (1 - gamma) * theta / s + gamma * theta

    def _literal_gamma(self, m: int, rotations: float) -> float:
        if self.options.form == "original":
            return float(self._gamma_by_pair(self.features // 2)[m])  # tests/oracles compares it with Hugging Face
        if rotations < 1:
            return 0.0
        return 1.0 if rotations > 32 else (rotations - 1) / (32 - 1)
