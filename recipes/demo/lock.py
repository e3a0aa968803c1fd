"""One run at a time in a folder."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .screen import Screen


@contextmanager
def only_one(path: Path, screen: Screen) -> Iterator[int]:
    """Hold the lock and give its descriptor.

    Commands inherit it, so that what a killed run left running is waited for, not written over.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            screen.line(f"waiting: another run, or a command that a killed run left, is at work in {path.parent}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()
