"""Extend rotary encodings to longer sequences: slow down the rotation of pairs, and scale queries and keys.

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
#: The same numbers of turns for Llama 3.1, unless the options say otherwise.
LLAMA_SLOW, LLAMA_FAST = 1.0, 4.0

#: The values of `scaling` to which each further option belongs.
_BELONGS_TO = {
    "factor": ("yarn", "linear", "ntk", "llama3", "longrope"),
    "original_length": ("yarn", "llama3", "longrope"),
    "form": ("yarn",),
    "low_freq_factor": ("llama3",),
    "high_freq_factor": ("llama3",),
    "short_factor": ("longrope",),
    "long_factor": ("longrope",),
    "attention_factor": ("yarn", "longrope"),
}


@dataclass(frozen=True)
class ScalingOptions(RotaryOptions):
    """Define the options that extend a rotary encoding to longer sequences."""

    scaling: str = option(
        "none",
        "How to extend a model to sequences that are `factor` times as long: divide positions by `factor` (linear), "
        "enlarge the base (ntk), divide the angles of slowly turning pairs by up to `factor` (llama3; also yarn, which "
        "scales the logits too), or divide the angle of each pair by a number of its own (longrope).",
        choices=("none", "yarn", "linear", "ntk", "llama3", "longrope"),
        elsewhere={"dynamic": "ntk", "default": "none"},  # rope_type in Hugging Face's configurations
    )
    factor: float | None = option(
        None,
        "Factor s by which sequences become longer. Every scaling except longrope needs this option; with longrope, s "
        "is n divided by original_length if this option is unset.",
        between=(1.001, 10_000),
        example=4.0,
    )
    original_length: int | None = option(
        None,
        "Maximum length L of the model before scaling=yarn, llama3 or longrope extends it (unset: n).",
        between=(1, 10_000_000),
        example=8,
    )
    form: str = option(
        "paper",
        "Whether the interpolation of scaling=yarn is linear in the number of turns of a pair (paper), or in the "
        "number m of the pair (original, as in the authors' code and in Hugging Face).",
        choices=("paper", "original"),
    )
    low_freq_factor: float | None = option(
        None,
        "Number of turns within original_length positions below which scaling=llama3 divides the angles of a pair by "
        "`factor` (unset: 1 turn).",
        between=(0.001, 1e6),
        example=0.5,
    )
    high_freq_factor: float | None = option(
        None,
        "Number of turns within original_length positions above which scaling=llama3 does not change the angles of a "
        "pair (unset: 4 turns).",
        between=(0.001, 1e6),
        example=3.0,
    )
    short_factor: tuple[float, ...] | None = option(
        None,
        "Numbers by which scaling=longrope divides the angles of the pairs if s is at most 1 (see `factor`): one "
        "number per pair, such as 1.0:1.1:1.3, or a single number for all pairs.",
        between=(0.001, 1e6),
        example=(1.5,),
    )
    long_factor: tuple[float, ...] | None = option(
        None,
        "Numbers by which scaling=longrope divides the angles of the pairs if s is above 1 (see `factor`), in the "
        "format of short_factor. A model uses short_factor or long_factor, never both.",
        between=(0.001, 1e6),
        example=(2.5,),
    )
    attention_factor: float | None = option(
        None,
        "Factor by which scaling=yarn or scaling=longrope multiplies queries and keys, so that their products are "
        "multiplied by its square (unset: 0.1 ln s + 1 for yarn; sqrt(1 + ln s / ln L) for longrope if s is above 1, "
        "otherwise 1; s is `factor` and L is original_length).",
        between=(0.001, 100),
        example=1.2,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, scalings in _BELONGS_TO.items():
            changed = getattr(self, name) != type(self).__dataclass_fields__[name].default
            if name != "factor" and changed and self.scaling not in scalings:
                raise InputError(
                    f"{name} has an effect with scaling={' or '.join(scalings)} only, but scaling={self.scaling}: "
                    f"leave {name} out, or change scaling"
                )
        if self.scaling != "longrope" and (self.scaling == "none") != (self.factor is None):
            if self.factor is None:
                raise InputError(f"scaling={self.scaling} needs factor: set it, e.g. scaling={self.scaling},factor=2")
            raise InputError(
                f"factor={self.factor} has no effect with scaling=none: leave factor out, or set a scaling, "
                "e.g. scaling=linear,factor=2"
            )
        if self.scaling == "longrope" and None not in (self.factor, self.attention_factor, self.original_length):
            raise InputError(
                f"original_length={self.original_length} has no effect, because factor and attention_factor are set: "
                "leave original_length out"
            )
        if self.turns[0] >= self.turns[1]:
            raise InputError("low_freq_factor={:g} must be less than high_freq_factor={:g}".format(*self.turns))

    @property
    def turns(self) -> tuple[float, float]:
        """Return the lower and the upper limit on the number of turns that a pair makes within L positions.

        The speed of pairs below the lower limit is divided by s. Pairs above the upper limit keep their speed.
        """
        if self.scaling != "llama3":
            return SLOW, FAST
        slow = LLAMA_SLOW if self.low_freq_factor is None else self.low_freq_factor
        return slow, LLAMA_FAST if self.high_freq_factor is None else self.high_freq_factor


class Scaling:
    """Scale the speeds of the pairs of a rotary encoding according to its options.

    Args:
        options: The options.
        features: Number of rotated features, R.
        max_length: Maximum length of the stack, n.

    Raises:
        ValueError: The options do not fit this number of features or this length.
    """

    def __init__(self, options: ScalingOptions, features: int, max_length: int) -> None:
        self.options, self.features = options, features
        self.length = options.original_length or max_length
        self.factor = max_length / self.length if options.factor is None else options.factor
        if options.scaling == "ntk" and features < 4:
            raise InputError("scaling=ntk needs two or more rotated pairs of features per head: use scaling=linear")
        if options.scaling == "longrope":
            self._check_lists()

    @property
    def attention_factor(self) -> float:
        """Return the factor by which both queries and keys are multiplied."""
        if self.options.attention_factor is not None:
            return self.options.attention_factor
        if self.options.scaling == "yarn":
            return 0.1 * math.log(self.factor) + 1
        if self.options.scaling == "longrope" and self.factor > 1:
            return math.sqrt(1 + math.log(self.factor) / math.log(self.length))
        return 1.0

    @property
    def divisors(self) -> tuple[float, ...]:
        """Return the numbers by which longrope divides the speeds: one per pair, or a single number for all pairs."""
        return (self.options.long_factor if self.factor > 1 else self.options.short_factor) or ()

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
        if kind == "longrope":
            return plain / torch.tensor(self.divisors, dtype=torch.float64)
        gamma = self.gamma_by_turns(plain) if self.options.form == "paper" else self.gamma_by_pair(len(plain))
        return torch.lerp(plain / self.factor, plain, gamma)

    def gamma_by_turns(self, speeds: Tensor) -> Tensor:
        """Return YaRN's gamma, [R/2]: 1 for pairs that keep their speed, 0 for pairs that turn s times as slowly."""
        slow, fast = self.options.turns
        turns = self.length * speeds / (2 * math.pi)
        return ((turns - slow) / (fast - slow)).clamp(0, 1)

    def gamma_by_pair(self, pairs: int) -> Tensor:
        """Return gamma as in YaRN's released code: linear in m, from 1 at 32 turns within L to 0 at one turn."""

        def pair_of(turns: float) -> float:
            ratio = self.length / (turns * 2 * math.pi)
            return self.features * math.log(ratio) / (2 * math.log(self.options.base))

        low, high = max(math.floor(pair_of(FAST)), 0), min(math.ceil(pair_of(SLOW)), self.features - 1)
        width = high - low or 0.001
        return 1 - ((torch.arange(pairs, dtype=torch.float64) - low) / width).clamp(0, 1)

    def _check_lists(self) -> None:
        """Raise ValueError if longrope has no list of divisors, or if a list does not fit the number of pairs."""
        pairs, needed = self.features // 2, "long_factor" if self.factor > 1 else "short_factor"
        if not self.divisors:
            raise InputError(
                f"scaling=longrope needs {needed} if s is {self.factor:g}, where s is `factor` or, if unset, n divided "
                f"by original_length: give {pairs} numbers (one per pair of features) with colons between them, as in "
                f"{needed}=1.0:1.5:2.0, or a single number for all pairs"
            )
        for name in ("short_factor", "long_factor"):
            numbers = getattr(self.options, name) or (1.0,)
            if len(numbers) not in (1, pairs):
                raise InputError(
                    f"{name} has {len(numbers)} numbers, but {pairs} pairs of features are rotated: give one number "
                    "per pair, or a single number for all pairs"
                )
        if self.factor > 1 and self.length < 2 and self.options.attention_factor is None:
            raise InputError(f"original_length={self.length} must be at least 2 for scaling=longrope")
