"""Bound the bytes that a compressed file unpacks to, so that a decompression bomb fills neither disk nor memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from .errors import DiskFullError

#: Bytes that any archive may unpack to, however small the archive is.
LARGEST_SMALL = 10**9
#: A larger archive may unpack to so many times its own size; compressed text grows by at most about 20 times.
RATIO = 200
#: Bytes of the disk that stay free for other programs.
RESERVE = 10**8
#: Bytes that a file of an archive counts at least, because an empty file takes space, too.
LEAST = 4096
#: Maximum number of bytes that are read into memory at once; tarfile reads a header of any length at once.
BLOCK = 1 << 24
#: First two bytes of the compressed files that may hold a tar archive.
OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


class RefusedError(Exception):
    """Report that an archive holds an entry that is not allowed, or unpacks to too many bytes."""


class Budget:
    """Count the bytes that an archive unpacks to, and refuse more than its size or the free space allows."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.archive, self.folder = archive, folder
        self.limit = max(LARGEST_SMALL, RATIO * archive.stat().st_size)
        self.free = shutil.disk_usage(folder).free
        self.written = 0

    def copy(self, source: IO[bytes], target: IO[bytes]) -> None:
        """Copy a stream, and stop before the byte that is too many."""
        while block := source.read(1 << 20):
            self.take(len(block))
            target.write(block)

    def take(self, size: int) -> None:
        """Count bytes that are about to be written."""
        self.written += size
        self.check(self.written)

    def check(self, size: int) -> None:
        """Compare a number of unpacked bytes with the limit and with the free space.

        Raises:
            RefusedError: No honest archive of this size unpacks to so many bytes.
            DiskFullError: The disk has too little space.
        """
        self.check_limit(size)
        if size > self.free - RESERVE:
            raise DiskFullError(
                f"{self.archive}: the unpacked files need at least {size:,} bytes and a reserve of {RESERVE:,} bytes, "
                f"but only {self.free:,} bytes are free in {self.folder}. Free some space, or choose another disk with "
                "--output."
            )

    def check_limit(self, size: int) -> None:
        """Compare a number of unpacked bytes with the limit alone, because these bytes are not written to disk."""
        if size > self.limit:
            raise RefusedError(
                f"it unpacks to more than {self.limit:,} bytes, the limit for an archive of its size, and may be a "
                "decompression bomb"
            )


class Bounded:
    """Read an uncompressed stream with random access, but not beyond the limit, and not too much at once."""

    def __init__(self, stream: IO[bytes], budget: Budget) -> None:
        self.stream, self.budget = stream, budget

    def read(self, size: int) -> bytes:
        if size > BLOCK:
            raise RefusedError(f"one of its headers has {size:,} bytes, and the limit is {BLOCK:,}")
        content = self.stream.read(size)
        self.budget.check_limit(self.stream.tell())
        return content

    def seek(self, position: int) -> int:
        self.budget.check_limit(position)  # before the bytes up to this position are uncompressed
        return self.stream.seek(position, os.SEEK_SET)

    def tell(self) -> int:
        return self.stream.tell()

    def seekable(self) -> bool:
        return True


@contextmanager
def uncompressed(path: Path, budget: Budget) -> Iterator[Bounded]:
    """Yield the uncompressed content of a file, whose first bytes show the format."""
    with path.open("rb") as file:
        start = file.read(2)
    with OPENERS.get(start, open)(path, "rb") as stream:
        yield Bounded(cast(IO[bytes], stream), budget)
