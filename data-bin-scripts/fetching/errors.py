"""What can go wrong, each with a message of one line for the user."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FetchError(Exception):
    """A file could not be had; the others may still come."""


class MirrorError(FetchError):
    """This address did not give it; another one may."""


class OverLimitError(FetchError):
    """It is larger than what `--limit` leaves."""


class DiskFullError(FetchError):
    """Nothing further can be written, so the whole run ends."""


@contextmanager
def clear_when_full(path: Path) -> Iterator[None]:
    """Around everything that writes: a full disk is said in one line, with where it is."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFullError(
            f"{path}: no space left to write it; free some or choose another disk with --output, "
            "then run it again: what has come is kept"
        ) from error
