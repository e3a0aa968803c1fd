"""Text as lines that end in LF and nothing else: what `str.splitlines` also splits at would shift the pairs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast


def open_maybe_gzip(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def raw_lines(path: Path) -> Iterator[bytes]:
    """The lines, without their LF.

    Raises:
        SystemExit: a gzip file that is cut or none.
    """
    number = 0
    try:
        with open_maybe_gzip(path) as file:
            for line in file:
                yield line.removesuffix(b"\n")
                number += 1
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SystemExit(f"error: {path}: line {number + 1}: not a whole gzip file ({error}); fetch it again") from None


def read(path: Path) -> Iterator[str]:
    for line in raw_lines(path):
        yield line.decode("utf-8")


def write(path: Path, lines: Iterable[str]) -> int:
    """How many were written."""
    number = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(line + "\n")
            number += 1
    return number
