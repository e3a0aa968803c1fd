"""Allow only one run at a time in an output folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .outputs import making
from .values import Refused

PATIENCE = 5.0  # seconds to wait until the commands of a killed run have ended (see tied.py)


@contextmanager
def only_one(folder: Path) -> Iterator[int]:
    """Lock the folder, and yield the file descriptor of the lock.

    The processes of tied.py, which watch the commands, inherit the descriptor. The folder of a killed run therefore
    stays locked until the run's commands have ended.

    Raises:
        Refused: Another run uses the folder, or the folder cannot be written.
    """
    from filelock import FileLock, Timeout  # imported here, because --list and --dry-run must work without it

    descriptors: list[int] = []
    with making(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock", on_acquired=descriptors.append)
        try:
            held = lock.acquire(PATIENCE)
        except Timeout:
            problem = "another run is using this folder. Wait until the other run ends, or choose another --output"
            raise Refused(f"--output {folder}: {problem}.") from None
    with held:
        yield descriptors[0]
