"""Estimate how long a run still takes, from the finished stages and from the progress of the running ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from .logs import fraction, log_of
from .recipe import Phase
from .stages import SKIPPED, Ledger, Stage

SETTLED = 20.0  # seconds after which the speed of a stage is known; earlier estimates would jump


@dataclass
class Remaining:
    """Estimate the time that is left.

    Args:
        phases: All stages of the run.
        ledger: Markers of the finished stages, which contain their times.
        output: Folder of the run, which contains the logs.
        slots: Number of commands that may run at the same time.
        now: Clock in seconds.
    """

    phases: Sequence[Phase]
    ledger: Ledger
    output: Path
    slots: int
    now: Callable[[], float] = time.monotonic
    #: when a stage was first seen running
    began: dict[Stage, float] = field(default_factory=dict)
    #: when a stage first told its progress, and which part of it was done then (it may continue an earlier attempt)
    first: dict[Stage, tuple[float, float]] = field(default_factory=dict)

    def text(self, running: Collection[Stage]) -> str:
        """Return the time that is left, such as `about 12 min left | `, or an empty text before the first estimate.

        If the duration of open stages is not known yet, the text is `more than 12 min left (3 stages not counted) | `.
        """
        seconds, unknown = self.seconds(running)
        if not seconds:
            return ""
        time_left = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
        if not unknown:
            return f"about {time_left} left | "
        return f"more than {time_left} left ({unknown} stage{'s' * (unknown != 1)} not counted) | "

    def seconds(self, running: Collection[Stage]) -> tuple[float, int]:
        """Return the estimate in seconds, and the number of open stages that it does not contain.

        Phases run one after another. A phase takes at least as long as its longest chain.
        """
        for stage in running:
            self.began.setdefault(stage, self.now())
        measured = {stage: left for stage in running if (left := self._left(stage)) is not None}
        means = self._means(measured)
        total, unknown = 0.0, 0
        for phase in self.phases:
            chains = [0.0]
            for chain in phase:
                times = [self._open(stage, measured, means, running) for stage in chain]
                unknown += times.count(None)
                chains.append(sum(seconds for seconds in times if seconds is not None))
            total += max(sum(chains) / self.slots, *chains)
        return total, unknown

    def _open(
        self,
        stage: Stage,
        measured: dict[Stage, tuple[float, float]],
        means: dict[str, float],
        running: Collection[Stage],
    ) -> float | None:
        """Return how many seconds a stage still takes, or None if this is not known."""
        if stage in measured:
            return measured[stage][0]
        if stage not in running and self.ledger.is_done(stage):
            return 0.0
        if stage.kind not in means:
            return None
        spent = self.now() - self.began[stage] if stage in running else 0.0
        return max(0.0, means[stage.kind] - spent)

    def _means(self, measured: dict[Stage, tuple[float, float]]) -> dict[str, float]:
        """Return the mean duration of finished stages of each kind, or of the running stages if none is finished."""
        running: dict[str, list[float]] = {}
        for stage, (_, whole) in measured.items():
            running.setdefault(stage.kind, []).append(whole)
        finished: dict[str, list[float]] = {}
        for stage in (stage for phase in self.phases for chain in phase for stage in chain):
            marker = self.ledger.read(stage)
            if "seconds" in marker and SKIPPED not in marker and self.ledger.is_done(stage):
                finished.setdefault(stage.kind, []).append(marker["seconds"])
        return {kind: fmean(seconds) for kind, seconds in {**running, **finished}.items()}

    def _left(self, stage: Stage) -> tuple[float, float] | None:
        """Return the remaining and the total seconds of a running stage, or None if they are not known yet."""
        done = fraction(stage, log_of(stage, self.output))
        if done is None:
            return None
        since, before = self.first.setdefault(stage, (self.now(), done))
        if done <= before or self.now() - since < SETTLED:
            return None
        whole = (self.now() - since) / (done - before)
        return max(0.0, 1 - done) * whole, whole
