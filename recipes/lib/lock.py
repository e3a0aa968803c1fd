"""One run at a time in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .outputs import making
from .values import Refused

PATIENCE = 5.0  # seconds that the commands of a killed run have to end (see tied.py)


@contextmanager
def only_one(folder: Path) -> Iterator[int]:
    """Hold the folder, and yield the lock's descriptor.

    What watches over a command inherits the descriptor. So a killed run holds the folder until its commands have ended,
    and the next run does not write beside them.

    Raises:
        Refused: Another run holds the folder, or nothing can be written there.
    """
    from filelock import FileLock, Timeout  # the command line can print its commands without it

    descriptors: list[int] = []
    with making(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", on_acquired=descriptors.append)
        try:
            held = lock.acquire(PATIENCE)
        except Timeout:
            told = f"another run is at work in {folder}: wait for it, or choose another folder with --output"
            raise Refused(told) from None
    with held:
        yield descriptors[0]
