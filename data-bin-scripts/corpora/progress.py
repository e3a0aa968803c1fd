"""A line a stage on the screen, and a bar while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from .job import Job, done


class Watch:
    """Shows how many documents a stage has done."""

    def __init__(self, job: Job, stage: str) -> None:
        self.job, self.stage = job, stage
        self._bar = tqdm(desc=stage, unit=" documents", mininterval=1, dynamic_ncols=True, leave=False, disable=None)

    def __call__(self) -> None:
        self._bar.update(done(self.job, self.stage) - self._bar.n)

    def close(self) -> None:
        self._bar.close()


@contextmanager
def shown(job: Job, stage: str) -> Iterator[Watch]:
    """The stage's line when it is done."""
    watch, started = Watch(job, stage), time.monotonic()
    try:
        yield watch
    finally:
        watch.close()
    documents = done(job, stage)
    print(f"{stage}: {documents:,} documents, {time.monotonic() - started:.0f} s", flush=True)
