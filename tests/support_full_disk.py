"""Let the system refuse large files, as a full disk would.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_larger_files(most: int, *processes: int) -> Iterator[None]:
    """Let the system refuse to write files of more than `most` bytes, in this process and in `processes` (their ids).

    Processes that these processes start inherit the limit.
    """
    everyone = (0, *processes)  # 0: this process
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for process in everyone:
        resource.prlimit(process, resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        for process in everyone:
            resource.prlimit(process, resource.RLIMIT_FSIZE, limits)
