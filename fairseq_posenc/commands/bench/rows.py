"""The rows: flat, the same fields whatever was measured."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping
from typing import Any

from . import clock, targets
from .measure import Measured
from .settings import Setting, Subject
from .subjects import TOKENS


@dataclasses.dataclass(frozen=True)
class Row:
    """One figure.

    Args:
        what: layer, model, decode, memory, length, exponent, translation or lm-memory. mode: train or infer.
        ratio, spread: relative to the baseline; median and half the interquartile range over `rounds` rounds, which
            are those of all `passes`. Memory is counted, not sampled: its spread is 0.
        target, stretch: what the ratio may be, and the aim; None where there is none.
        milliseconds: of a step with the encoding, for a token in decoding. mib: of a sequence.
        exponent: of lengths `first` to `length`, where `what` is exponent: of time or, with mode `memory`, of that.
        peer: the package that a row of another implementation is from.
    """

    encoding: str
    options: str
    what: str
    mode: str
    shape: str
    width: int
    heads: int
    layers: int
    length: int
    batch: int
    causal: bool
    padded: bool
    dtype: str
    ratio: float | None = None
    spread: float | None = None
    target: float | None = None
    stretch: float | None = None
    rounds: int = 0
    passes: int = 0
    milliseconds: float | None = None
    mib: float | None = None
    first: int | None = None
    exponent: float | None = None
    peer: str | None = None

    @classmethod
    def of(cls, subject: Subject, setting: Setting, **figures: Any) -> Row:
        """Return a row with the fields of what was measured."""
        return cls(
            encoding=subject.encoding,
            options=subject.options,
            what=setting.what,
            mode=setting.mode,
            shape=setting.shape.name,
            width=setting.shape.dim,
            heads=setting.shape.heads,
            layers=setting.layers,
            length=setting.length,
            batch=setting.batch,
            causal=setting.causal,
            padded=setting.padded,
            dtype=str(setting.dtype).removeprefix("torch."),
            **figures,
        )

    @property
    def noise(self) -> float:
        """Return how far a ratio may be above its target; memory is counted and has no noise."""
        exact = self.what == "memory" or (self.what, self.mode) == ("lm-memory", "infer")
        return 0.0 if exact else targets.NOISE

    @property
    def holds(self) -> bool | None:
        """Return whether the target holds; None where there is none."""
        return None if self.target is None or self.ratio is None else self.ratio <= self.target + self.noise

    def flat(self, machine: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row as a flat object for JSON."""
        return {**dataclasses.asdict(self), "holds": self.holds, **machine}

    @property
    def name(self) -> str:
        """Return the encoding with its options, as the user asks for it."""
        return str(Subject(self.encoding, self.options))

    @property
    def origin(self) -> str:
        """Return the package that another implementation is from, in brackets."""
        return f" [{self.peer}]" if self.peer else ""

    def __str__(self) -> str:
        where = f"{self.what} {self.mode}, {self.shape}, n={self.length} x {self.batch}"
        return f"{self.name}, {where}: {self.ratio:.3f} ± {self.spread:.3f}, target {self.target:.2f} + {self.noise}"


def timed(one: Measured, peer: str | None = None) -> Row:
    """Return the row of a measurement."""
    tokens = TOKENS if one.setting.what == "decode" else 1
    return Row.of(
        one.subject,
        one.setting,
        ratio=round(one.ratio, 4),
        spread=round(clock.spread(one.ratios), 4),
        target=one.target,
        stretch=one.stretch,
        rounds=len(one.ratios),
        passes=one.passes,
        milliseconds=round(1e3 * statistics.median(one.seconds) / tokens, 3),
        peer=peer,
    )
