"""Let one process at a time use a file or folder.

This file imports the standard library only: recipes and data scripts load it without the package, which needs torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, patience: float, busy: Exception | str) -> Iterator[int]:
    """Lock a file during a `with` block, and yield the file descriptor of the lock.

    Args:
        path: File of the lock, in a folder that exists. It is created, and stays when the lock ends.
        patience: Number of seconds to wait for another process that holds the lock.
        busy: Error to raise afterwards, or text to print before waiting as long as the other process takes.
    """
    from filelock import FileLock, Timeout  # imported here, because `--list` and `--dry-run` must work without it

    descriptors: list[int] = []
    lock = FileLock(path, on_acquired=descriptors.append)
    try:
        held = lock.acquire(patience)
    except Timeout:
        if isinstance(busy, Exception):
            raise busy from None
        print(busy, flush=True)
        held = lock.acquire()
    with held:
        yield descriptors[0]
