"""Time several steps in turn, so that other load on the machine slows all of them alike and hardly changes ratios."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

Step = Callable[[], object]
#: Tests replace these clocks: of the wall, and of the time that this process spends on a CPU.
now, busy = time.perf_counter, time.process_time


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
        _timed(step, device)
    rounds_done: list[list[float]] = []
    while rounds.another(len(rounds_done)):
        seconds = [0.0] * len(steps)
        for i in range(len(steps)):
            number = (i + len(rounds_done)) % len(steps)
            seconds[number] = _timed(steps[number], device)
        rounds_done.append(seconds)
    return rounds_done


def _timed(step: Step, device: torch.device) -> float:
    """Return the duration of a step in seconds. With one CPU thread, the time of other programs is not counted."""
    clock = busy if device.type == "cpu" and torch.get_num_threads() == 1 else now
    _wait(device)
    start = clock()
    step()
    _wait(device)
    return clock() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def spread(values: Sequence[float]) -> float:
    """Return half the interquartile range of the values; a single value has the range 0."""
    low, high = np.percentile(values, (25, 75))
    return float(high - low) / 2
