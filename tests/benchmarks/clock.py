"""Time several steps in turn, so that other load on the machine slows all of them alike and hardly changes ratios."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

Step = Callable[[], object]
#: Steps that are timed together, by the type of the device. A GPU works through a queue of operations, so that the time
#: of launching them hardly counts in training. With single steps, it would.
TOGETHER = {"cpu": 1, "cuda": 8}
#: Tests replace this clock.
now = time.perf_counter


@dataclass(frozen=True)
class Rounds:
    """Allow from `least` to `most` rounds. After `least` rounds, no round begins later than `until`."""

    least: int
    most: int
    until: float = math.inf

    def another(self, done: int) -> bool:
        """Return whether another round may begin after `done` rounds."""
        return done < self.least or (done < self.most and now() < self.until)


def interleaved(steps: Sequence[Step], rounds: Rounds, device: torch.device) -> list[list[float]]:
    """Return the seconds of each step in each round.

    A round times each step once. Each round begins with a different step. Before the first round, every step runs once
    without being timed, to compile and to fill its caches.
    """
    for step in steps:
        timed(step, device)
    seconds_by_round: list[list[float]] = []
    while rounds.another(len(seconds_by_round)):
        seconds = [0.0] * len(steps)
        for i in range(len(steps)):
            number = (i + len(seconds_by_round)) % len(steps)
            seconds[number] = timed(steps[number], device)
        seconds_by_round.append(seconds)
    return seconds_by_round


def timed(step: Step, device: torch.device) -> float:
    """Return the mean duration of a step in seconds."""
    steps = TOGETHER[device.type]
    _wait(device)
    start = now()
    for _ in range(steps):
        step()
    _wait(device)
    return (now() - start) / steps


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def spread(values: Sequence[float]) -> float:
    """Return half the interquartile range of the values; a single value has the range 0."""
    low, high = np.percentile(values, (25, 75))
    return float(high - low) / 2
