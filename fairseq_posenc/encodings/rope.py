"""Implement RoPE, which rotates queries and keys by their positions, with extensions to longer contexts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core import rotary, tables
from ..core.base import ABSOLUTE, RELATIVE, Capabilities, Facts, Layer, StackShape
from ..core.options import option
from ..core.refusal import InputError
from ..core.rotary_scaling import Scaling, ScalingOptions
from ..ops.precision import exact_product
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
    fourier: bool = option(
        False,
        "Whether the cosine and the sine by which a pair is rotated are learned sums of the cosines and sines of all "
        "pairs that make at least one turn within n positions (FoPE). The other pairs are not rotated.",
    )
    # `share` and `init_std` would be ambiguous in `rope+t5[share=all]`, with which models were trained.
    fourier_share: str = tables.share_option("none")
    fourier_std: float | None = option(
        None, "Standard deviation of the initial weights of fourier=true (unset: 0.02).", between=(0, 100), example=0.1
    )

    def __post_init__(self) -> None:
        if self.fraction < 1 and self.proportion < 1:
            raise InputError(
                f"fraction={self.fraction} and proportion={self.proportion} choose the rotated features in two ways: "
                "set only one of them"
            )
        super().__post_init__()
        for name in ("proportion", "scaling") if self.fourier else ("fourier_share", "fourier_std"):
            if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                effect = "does not work" if self.fourier else "has no effect"
                raise InputError(
                    f"{name}={getattr(self, name)} {effect} with fourier={str(self.fourier).lower()}: leave {name} "
                    "out, or change fourier"
                )


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

    With `fourier` (FoPE, Hua et al. 2024), pair m at position p is multiplied by f_m(p) instead of exp(i p w_m), where
    w_m = base^(-2m/R) is the angle of the pair. Pairs with w_m < 2 pi / n, which make less than one turn within n
    positions, are not rotated (f_m = 1). For the first F pairs, which make a turn (the first one always counts):

    - f_m(p) = exp(i p w_m) + sum_l (a_lm cos(p w_l) + i b_lm sin(p w_l)) over l < F, equation (13) of the paper.
    - Parameters: a and b, [F, F], 2 F^2 numbers for each layer and head (`fourier_share`), drawn from N(0, 0.02). The
      paper draws them from N(0, sigma); in its code, sigma is 0.02 to 0.04. The code does not train them, and divides
      each column of 1 + a and of 1 + b by its sum, which can be near 0; neither is in equation (13). For pairs that
      are not rotated, the code uses the sine 1; here, it is 0, as in equation (13) and in vLLM.
    - The logits depend on both positions, not only on their distance. Segment memory is therefore refused. Positions
      begin anew in each document, and padding is not counted.

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
        equation="for the option `scaling`; Hua et al. 2024 (FoPE) for the option `fourier`",
        formula=r"e_{ij} = \frac{(R_i q_i) \cdot (R_j k_j)}{\sqrt{D}}",
        count="0, or 2 m h F^2 with fourier=true, where F is the number of pairs that make a turn within n positions",
    )
    options: RopeOptions

    cosine: Tensor
    sine: Tensor

    def __init__(self, options: RopeOptions, stack: StackShape) -> None:
        for name in ("fraction", "proportion"):
            if stack.head_dim % 2 == 0 and stack.head_dim * getattr(options, name) < 2:
                raise InputError(
                    f"{name}={getattr(options, name)} of the head width {stack.head_dim} is less than one pair of "
                    f"features: set {name}={2 / stack.head_dim:g} or more"
                )
        features = _features(options, stack)
        super().__init__(options, stack, features)
        self._scaling = Scaling(options, features, stack.max_length)

    @classmethod
    def shapes(cls, options: Any, stack: StackShape) -> dict[str, tuple[int, ...]]:
        if not options.fourier:
            return {}
        count = _turning(options, stack)
        return {name: tables.shape(options.fourier_share, stack, count, count) for name in ("cosine", "sine")}

    def reset_parameters(self) -> None:
        """Draw the weights of `fourier` from a normal distribution, whose standard deviation is 0.02 by default."""
        for weight in (self.cosine, self.sine):
            nn.init.normal_(weight, std=0.02 if self.options.fourier_std is None else self.options.fourier_std)

    @property
    def capabilities(self) -> Capabilities:
        return ABSOLUTE if self.options.fourier else RELATIVE

    @property
    def scale(self) -> float | None:
        if self.options.scaling != "yarn":
            return None
        return float(self.stack.head_dim**-0.5 * self._scaling.attention_factor**2)

    def speeds(self) -> Tensor:
        speeds = self._scaling.scaled(super().speeds())
        if self.options.fourier:
            return speeds[: _turning(self.options, self.stack)]
        speeds[int(len(speeds) * self.options.proportion) :] = 0
        return speeds

    def project_q(self, q: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return self._turned(q, *self._factors(q, positions, layer))

    def project_k(self, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return self._turned(k, *self._factors(k, positions, layer))

    def _factors(self, x: Tensor, positions: Positions, layer: Layer) -> Sequence[Tensor]:
        """Return the cosines and sines by which x [B, h, T, D] is rotated, [T, R/2], or with axes of B and h."""
        turns = self._turns_at(x, positions)
        if not self.options.fourier:
            return turns
        cos, sin = (
            turn + exact_product(turn, layer.tensors[name]) for turn, name in zip(turns, self._names, strict=True)
        )
        others = (0, self.features // 2 - cos.shape[-1])
        return F.pad(cos, others, value=1.0), F.pad(sin, others)

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        if self.options.fourier:
            return self._literal_fourier(q, k, positions, layer)
        speeds = torch.tensor([self._literal_speed(m) for m in range(self.features // 2)], dtype=torch.float64)
        turns = torch.exp(-1j * positions.delta[..., None] * speeds)
        root_of_t = 1.0
        if self.options.scaling == "yarn":
            root_of_t = 1 / (0.1 * math.log(self.options.factor or 1) + 1)
        return self.literal_product(q, k, turns) / (root_of_t**2 * self.stack.head_dim**0.5)

    def _literal_fourier(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """Return the logits for f of equation (13): Re sum_m q_m f_m(i) conj(k_m f_m(j)), and the other features."""
        a, b = (tables.of_layer(table, layer.rank, self.stack.heads) for table in (self.cosine, self.sine))
        w = [self.options.base ** (-2 * m / self.features) for m in range(self.features // 2)]
        least = 2 * math.pi / self.stack.max_length
        kept = [m for m, speed in enumerate(w) if m == 0 or speed >= least]

        def factor(m: int, ids: Tensor) -> Tensor:  # [B, h, T]
            p = ids[:, None].double()
            if m not in kept:
                return torch.ones_like(p * a[:, :1, 0], dtype=torch.complex128)
            sums = [a[:, n, m, None] * (p * w[n]).cos() + 1j * b[:, n, m, None] * (p * w[n]).sin() for n in kept]
            return torch.exp(1j * p * w[m]) + torch.stack(sums).sum(0)

        ids = positions.key_ids.reshape(-1, positions.key_length)
        factors = torch.stack([factor(m, ids) for m in range(self.features // 2)], -1)  # [B, h, K, R/2]
        q_pairs = self._complex(q[..., : self.features]) * factors[:, :, positions.offset :]
        k_pairs = self._complex(k[..., : self.features]) * factors
        product = torch.einsum("bhim,bhjm->bhij", q_pairs, k_pairs.conj()).real
        others = torch.einsum("bhid,bhjd->bhij", q[..., self.features :], k[..., self.features :])
        return (product + others) / self.stack.head_dim**0.5

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


def _features(options: RopeOptions, stack: StackShape) -> int:
    """Return the number of rotated features, R."""
    return stack.head_dim if options.fraction == 1 else 2 * int(stack.head_dim * options.fraction / 2)


def _turning(options: RopeOptions, stack: StackShape) -> int:
    """Return F, the number of pairs that make at least one turn within n positions. One pair always counts."""
    count, least = _features(options, stack), 2 * math.pi / stack.max_length
    return max(1, sum(options.base ** (-2 * m / count) >= least for m in range(count // 2)))
