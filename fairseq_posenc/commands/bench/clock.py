"""Time subjects in turns: other load on the machine slows all subjects of a round alike, so that ratios stay."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from scipy import stats

Step = Callable[[], object]
#: Tests replace this clock.
now = time.perf_counter


@dataclass(frozen=True)
class Rounds:
    """The number of rounds: at least `least` and at most `most`. After `until` (a time of `now`) no more are begun."""

    least: int
    most: int
    until: float = math.inf

    def another(self, done: int) -> bool:
        """Return whether to do another round after `done` rounds."""
        return done < self.least or (done < self.most and now() < self.until)


def interleaved(steps: Sequence[Step], rounds: Rounds, device: torch.device) -> list[list[float]]:
    """Return the seconds of each step in each round. A round times each step once; each round begins with another step.

    Before the first round every step runs once, untimed, to compile and to fill its caches.
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
    """Return half the interquartile range; it is 0 for a single value."""
    return float(stats.iqr(values)) / 2
