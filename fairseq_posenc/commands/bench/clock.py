"""Interleaved timing: what a machine does meanwhile slows all subjects of a round alike, and the ratio stays."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from scipy import stats

Step = Callable[[], object]
#: replaced in tests
now = time.perf_counter


@dataclass(frozen=True)
class Rounds:
    """How often to time: at least `least` and at most `most` rounds, none begun after `until` (as of `now`)."""

    least: int
    most: int
    until: float = math.inf

    def another(self, done: int) -> bool:
        """Return whether there is one more round."""
        return done < self.least or (done < self.most and now() < self.until)


def interleaved(steps: Sequence[Step], rounds: Rounds, device: torch.device) -> list[list[float]]:
    """Return the seconds of each step in each round; a round times each step once and begins with another one.

    All steps run once before, which compiles and fills what they keep.
    """
    for step in steps:
        _timed(step, device)
    found: list[list[float]] = []
    while rounds.another(len(found)):
        seconds = [0.0] * len(steps)
        for i in range(len(steps)):
            which = (i + len(found)) % len(steps)
            seconds[which] = _timed(steps[which], device)
        found.append(seconds)
    return found


def _timed(step: Step, device: torch.device) -> float:
    _wait(device)
    start = now()
    step()
    _wait(device)
    return now() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def spread(values: Sequence[float]) -> float:
    """Return half the interquartile range; 0 of a single value."""
    return float(stats.iqr(values)) / 2
