"""Extend rotary encodings to longer sequences: slow down the rotation of pairs, and scale the logits.

Legend: s is the factor by which sequences become longer, L the original length, n the maximum length of the stack, R
the number of rotated features and m the number of a pair. A pair's speed is its angle from one position to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .options import option
from .refusal import InputError
from .rotary import RotaryOptions

#: YaRN's alpha and beta (section 3.2, for LLaMA). Pairs that turn less often than SLOW within the original length are
#: interpolated; pairs that turn more often than FAST are not changed.
SLOW, FAST = 1.0, 32.0


@dataclass(frozen=True)
class ScalingOptions(RotaryOptions):
    """Define the options that extend a rotary encoding to longer sequences."""

    scaling: str = option(
        "none",
        "How to extend a model to sequences that are `factor` times as long: divide positions by `factor` (linear), "
        "enlarge the base (ntk), or divide the angles of slowly turning pairs by up to `factor` and scale the logits "
        "(yarn).",
        choices=("none", "yarn", "linear", "ntk"),
        elsewhere={"dynamic": "ntk", "default": "none"},  # rope_type in Hugging Face's configurations
    )
    factor: float | None = option(
        None,
        "Factor s by which sequences become longer. Every scaling needs this option.",
        between=(1.001, 10_000),
        example=4.0,
    )
    original_length: int | None = option(
        None,
        "Maximum length L of the model before scaling=yarn extends it (unset: n).",
        between=(1, 10_000_000),
        example=8,
    )
    form: str = option(
        "paper",
        "Whether the interpolation of scaling=yarn is linear in the number of turns of a pair (paper), or in the "
        "number m of the pair (original, as in the authors' code and in Hugging Face).",
        choices=("paper", "original"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("original_length", "form"):
            changed = getattr(self, name) != type(self).__dataclass_fields__[name].default
            if changed and self.scaling != "yarn":
                raise InputError(
                    f"{name} has an effect with scaling=yarn only, but scaling={self.scaling}: "
                    f"leave {name} out, or change scaling"
                )
        if self.scaling != "none" and self.factor is None:
            raise InputError(f"scaling={self.scaling} needs factor: set it, e.g. scaling={self.scaling},factor=2")
        if self.scaling == "none" and self.factor is not None:
            raise InputError(
                f"factor={self.factor} has no effect with scaling=none: leave factor out, or set a scaling, "
                "e.g. scaling=linear,factor=2"
            )


class Scaling:
    """Scale the speeds of the pairs of a rotary encoding according to its options.

    Args:
        options: The options.
        features: Number of rotated features, R.
        max_length: Maximum length of the stack, n.

    Raises:
        ValueError: The options do not fit this number of features.
    """

    def __init__(self, options: ScalingOptions, features: int, max_length: int) -> None:
        self.options, self.features = options, features
        self.length = options.original_length or max_length
        self.factor = 1.0 if options.factor is None else options.factor
        if options.scaling == "ntk" and features < 4:
            raise InputError("scaling=ntk needs two or more rotated pairs of features per head: use scaling=linear")

    @property
    def attention_factor(self) -> float:
        """Return the factor by which YaRN multiplies both queries and keys."""
        return 0.1 * math.log(self.factor) + 1

    def scaled(self, plain: Tensor) -> Tensor:
        """Return the scaled speeds of all pairs, [R/2] float64, for the speeds `plain` before scaling."""
        kind = self.options.scaling
        if kind == "none":
            return plain
        if kind == "linear":
            return plain / self.factor
        if kind == "ntk":
            pairs = torch.arange(len(plain), dtype=torch.float64)
            return plain * self.factor ** (-2 * pairs / (self.features - 2))
        gamma = self.gamma_by_turns(plain) if self.options.form == "paper" else self.gamma_by_pair(len(plain))
        return torch.lerp(plain / self.factor, plain, gamma)

    def gamma_by_turns(self, speeds: Tensor) -> Tensor:
        """Return YaRN's gamma, [R/2]: 1 for pairs that keep their speed, 0 for pairs that turn s times as slowly."""
        turns = self.length * speeds / (2 * math.pi)
        return ((turns - SLOW) / (FAST - SLOW)).clamp(0, 1)

    def gamma_by_pair(self, pairs: int) -> Tensor:
        """Return gamma as in YaRN's released code: linear in m, from 1 at 32 turns within L to 0 at one turn."""

        def pair_of(turns: float) -> float:
            ratio = self.length / (turns * 2 * math.pi)
            return self.features * math.log(ratio) / (2 * math.log(self.options.base))

        low, high = max(math.floor(pair_of(FAST)), 0), min(math.ceil(pair_of(SLOW)), self.features - 1)
        width = high - low or 0.001
        return 1 - ((torch.arange(pairs, dtype=torch.float64) - low) / width).clamp(0, 1)
