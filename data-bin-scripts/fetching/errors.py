"""Define the errors of `fetch.py`; each message is a single line for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared import FULL, free_bytes


class FetchError(Exception):
    """Report that a file could not be fetched; the run continues with the other files."""


class MirrorError(FetchError):
    """Report that one address failed to deliver the file; another mirror may still deliver it."""


class OverLimitError(FetchError):
    """Report that the file has more bytes than `--limit` still allows."""


class DiskFullError(FetchError):
    """Report that the disk is full, which ends the whole run."""


@contextmanager
def clear_when_full(path: Path, size: int | None = None) -> Iterator[None]:
    """Raise a DiskFullError that names `path` if the disk becomes full inside the block.

    Args:
        size: Number of bytes that the whole file needs; None: unknown.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        needed = "" if size is None else f"The whole file needs {size:,} bytes, and "
        free = f"{free_bytes(path.parent)} bytes are free in {path.parent}"
        raise DiskFullError(
            f"{path}: no space is left on the disk. {needed}{free}. Free some space, or choose another disk with "
            "--output, and run the command again. Downloaded bytes are kept."
        ) from error
