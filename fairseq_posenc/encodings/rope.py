"""RoPE: queries and keys rotated by their positions (Su et al. 2021), and its context extensions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core import rotary
from ..core.base import Facts, Layer, StackShape
from ..core.options import option
from ..positions import Positions

#: YaRN's alpha and beta: pairs that turn less often than SLOW within the original length are interpolated,
#: those that turn more often than FAST are left alone (section 3.2, for LLaMA)
SLOW, FAST = 1, 32


@dataclass(frozen=True)
class RopeOptions(rotary.RotaryOptions):
    """Options of RoPE."""

    fraction: float = option(1.0, "the part of a head that is rotated, in whole pairs (GPT-NeoX: 0.25)", example=0.5)
    scaling: str = option(
        "none",
        "for sequences `factor` times longer: positions / factor (linear), a larger base (ntk), or each pair by "
        "how often it turns, and a temperature (yarn)",
        choices=("none", "yarn", "linear", "ntk"),
    )
    factor: float | None = option(None, "s, how many times longer; belongs to scaling", example=4.0)
    original_length: int | None = option(None, "L, the length before scaling=yarn; unset: n", least=1, example=8)
    form: str = option(
        "paper",
        "of scaling=yarn: linear in how often a pair turns (paper), or in its number m (original: its code, HF)",
        choices=("paper", "original"),
    )

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction={self.fraction} is a part: above 0, up to 1")
        if (self.scaling == "none") != (self.factor is None):
            raise ValueError(
                f"scaling={self.scaling} with factor={self.factor}: give both (scaling=linear,factor=2) or neither"
            )
        if self.factor is not None and self.factor <= 1:
            raise ValueError(f"factor={self.factor} must exceed 1: sequences get longer")
        if self.scaling != "yarn" and (self.original_length is not None or self.form != "paper"):
            raise ValueError(f"original_length and form belong to scaling=yarn, not to scaling={self.scaling}")
        super().__post_init__()


class Rope(rotary.Rotary):
    """e_ij = (R_i q_i) . (R_j k_j) / sqrt(D), R_p a rotation of each feature pair m by p base^(-2m/D).

    The two layouts are not interchangeable without permuting the projections. With `fraction`
    the first R = fraction D features are rotated, at speeds base^(-2m/R), and the others are not.

    `scaling` is for a model that was trained on shorter sequences, with s the factor:
    linear (Chen et al. 2023): R_(p/s). ntk (bloc97; Peng et al. 2023, 3.1): base s^(R/(R-2)), fixed, not HF's
    'dynamic', which depends on the length. yarn (Peng et al. 2023, 3.2 and 3.3): R_(p/s) for the pairs that
    turn less than once within L, R_p for those that turn more than 32 times, in between a mixture; all logits
    by (0.1 ln s + 1)^2. The mixture is linear in the number of turns in the paper and in m in its released
    code (`form`). HF multiplies q and k by the temperature's root, which with `fraction` leaves the rest of a
    head as it is; here it is in the scale of the logits, as in the paper.
    """

    Options = RopeOptions
    facts = Facts(
        title="RoPE: rotary",
        paper="Su et al. 2021; Chen et al. 2023 (linear), Peng et al. 2023 (ntk, yarn)",
        equation="(16), (34)",
        formula=r"e_{ij} = \frac{(R_i q_i) \cdot (R_j k_j)}{\sqrt{D}}",
    )
    options: RopeOptions

    def __init__(self, options: RopeOptions, stack: StackShape) -> None:
        if stack.head_dim % 2 == 0 and stack.head_dim * options.fraction < 2:
            raise ValueError(f"fraction={options.fraction} of a head width of {stack.head_dim} is less than one pair")
        features = stack.head_dim if options.fraction == 1 else 2 * int(stack.head_dim * options.fraction / 2)
        super().__init__(options, stack, features)
        if options.scaling == "ntk" and features < 4:
            raise ValueError("scaling=ntk spreads over the pairs, of which a head must rotate two or more: use linear")

    @property
    def scale(self) -> float | None:
        if self.options.scaling != "yarn":
            return None
        return float(self.stack.head_dim**-0.5 * self._inverse_temperature)

    @property
    def _inverse_temperature(self) -> float:
        """Return YaRN's 1/t, by which its logits are multiplied."""
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
        kept = self._kept_by_turns(plain) if self.options.form == "paper" else self._kept_by_pair(len(plain))
        return torch.lerp(plain / factor, plain, kept)

    def _kept_by_turns(self, speeds: Tensor) -> Tensor:
        """Return YaRN's gamma, [R/2]: 1 where a pair keeps its speed, 0 where it is slowed down."""
        turns = self._original_length * speeds / (2 * math.pi)
        return ((turns - SLOW) / (FAST - SLOW)).clamp(0, 1)

    def _kept_by_pair(self, pairs: int) -> Tensor:
        """Return gamma as the released code has it: linear between the pairs that turn FAST and SLOW times."""

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
        """Return theta_m, as its paper writes it."""
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
            return float(self._kept_by_pair(self.features // 2)[m])  # compared with HF in tests/oracles
        if rotations < 1:
            return 0.0
        return 1.0 if rotations > 32 else (rotations - 1) / (32 - 1)
