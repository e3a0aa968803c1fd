"""Estimate how long a run still takes, from the finished stages and from the speed of the trainings that run."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from .logs import fraction, log_of
from .stages import Ledger, Stage


@dataclass
class Remaining:
    """Estimate the time that is left.

    Args:
        stages: All stages of the run.
        ledger: Markers of the finished stages, which contain their times.
        output: Folder of the run, which contains the logs.
        slots: Number of commands that may run at the same time.
        now: Clock in seconds.
    """

    stages: Sequence[Stage]
    ledger: Ledger
    output: Path
    slots: int
    now: Callable[[], float] = time.monotonic
    #: when a training was first seen, and which part of it was done then (it may continue an earlier attempt)
    first: dict[Stage, tuple[float, float]] = field(default_factory=dict)

    def text(self, running: Collection[Stage]) -> str:
        """Return the time that is left, such as `about 12 min left | `; empty if nothing is known about trainings."""
        seconds = self.seconds(running)
        if not seconds:  # only stages of unknown kinds are left
            return ""
        return f"about {seconds / 60:.0f} min left | " if seconds >= 90 else f"about {seconds:.0f} s left | "

    def seconds(self, running: Collection[Stage]) -> float | None:
        """Return the estimate in seconds, or None if nothing is known about the training stages.

        Other stages count as 0 until a stage of the same kind has finished.
        """
        by_stage = {stage: left for stage in running if (left := self._left(stage)) is not None}
        means = self._means()
        if "train" not in means and by_stage:
            means["train"] = fmean(whole for _, whole in by_stage.values())
        waiting = [stage for stage in self.stages if stage not in by_stage and not self.ledger.is_done(stage)]
        if "train" not in means and any(stage.kind == "train" for stage in waiting):
            return None
        if not means:
            return None
        total = sum(seconds for seconds, _ in by_stage.values()) + sum(means.get(stage.kind, 0.0) for stage in waiting)
        return total / max(1, min(self.slots, len(by_stage) + len(waiting)))

    def _means(self) -> dict[str, float]:
        times: dict[str, list[float]] = {}
        for stage in self.stages:
            if self.ledger.is_done(stage) and "seconds" in (marker := self.ledger.read(stage)):
                times.setdefault(stage.kind, []).append(marker["seconds"])
        return {kind: fmean(seconds) for kind, seconds in times.items()}

    def _left(self, stage: Stage) -> tuple[float, float] | None:
        """Return the remaining and the total seconds of a running training, or None if they are not known yet."""
        done = fraction(stage, log_of(stage, self.output))
        if done is None:
            return None
        began, before = self.first.setdefault(stage, (self.now(), done))
        if done <= before:
            return None
        whole = (self.now() - began) / (done - before)
        return max(0.0, 1 - done) * whole, whole
