"""Hold the measurements of a benchmark in rows. The rows of all parts of the benchmark have the same fields."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping
from typing import Any

from .. import clock
from . import targets
from .measure import Measured
from .settings import Setting, Subject
from .subjects import TOKENS


@dataclasses.dataclass(frozen=True)
class Row:
    """Hold the result of one measurement.

    Args:
        what: What was measured: layer, model, decode, memory, length, exponent, translation or lm-memory.
        mode: train or infer. If `what` is exponent, the mode can also be memory.
        ratio, spread: Cost relative to the baseline: the median and half the interquartile range over all rounds.
            Memory is counted exactly, so its spread is 0.
        target, stretch: Target and aim of the ratio; None if there is no target or no aim.
        rounds, passes: Number of all rounds, and number of passes over the measurements (see `measure.Plan`).
        milliseconds: Time of a step with the encoding; in decoding, time per token.
        mib: Memory of one sequence in MiB.
        exponent: Exponent with which time (or memory, if `mode` is memory) grows between the lengths `first` and
            `length`; None if `what` is not exponent.
        peer: Package and version of another implementation; None for our own.
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
    def of(cls, subject: Subject, setting: Setting, **measurements: Any) -> Row:
        """Return the row of an encoding in a setting; `measurements` are the row's other fields."""
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
            **measurements,
        )

    @property
    def noise(self) -> float:
        """Return by how much a ratio may exceed its target.

        The result is 0 for memory, and for lm-memory in inference, because its targets are smaller than the noise.
        """
        exact = self.what == "memory" or (self.what, self.mode) == ("lm-memory", "infer")
        return 0.0 if exact else targets.NOISE

    @property
    def holds(self) -> bool | None:
        """Return whether the ratio is within its target; None if there is no target."""
        return None if self.target is None or self.ratio is None else self.ratio <= self.target + self.noise

    def flat(self, machine: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row with the facts about the machine as one JSON object without nested objects."""
        return {**dataclasses.asdict(self), "holds": self.holds, **machine}

    @property
    def name(self) -> str:
        """Return the encoding with its options, in the form of --encodings."""
        return str(Subject(self.encoding, self.options))

    @property
    def origin(self) -> str:
        """Return the package of another implementation in brackets; an empty text for our own implementation."""
        return f" [{self.peer}]" if self.peer else ""

    def __str__(self) -> str:
        where = f"{self.what} {self.mode}, {self.shape}, n={self.length} x {self.batch}"
        target = f"target {self.target:.2f}, tolerance {self.noise}"
        return f"{self.name}, {where}: {self.ratio:.3f} ± {self.spread:.3f}, {target}"


def timed(result: Measured, peer: str | None = None) -> Row:
    """Return the row for the measured times of an encoding."""
    tokens = TOKENS if result.setting.what == "decode" else 1
    return Row.of(
        result.subject,
        result.setting,
        ratio=round(result.ratio, 4),
        spread=round(clock.spread(result.ratios), 4),
        target=result.target,
        stretch=result.stretch,
        rounds=len(result.ratios),
        passes=result.passes,
        milliseconds=round(1e3 * statistics.median(result.seconds) / tokens, 3),
        peer=peer,
    )
