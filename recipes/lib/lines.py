"""Read and write lines that end in LF only.

`str.splitlines` also splits lines at other characters, which would misalign parallel text.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast


def open_maybe_gzip(path: Path) -> BinaryIO:
    """Open a file for reading; a name that ends in .gz means a gzip file."""
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines without their LF.

    Raises:
        SystemExit: A gzip file is damaged or incomplete.
    """
    number = 0
    try:
        with open_maybe_gzip(path) as file:
            for line in file:
                yield line.removesuffix(b"\n")
                number += 1
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        problem = f"the gzip file is damaged or incomplete ({error})"
        raise SystemExit(f"error: {path}:{number + 1}: {problem}. Download the file again.") from None


def read(path: Path) -> Iterator[str]:
    """Yield the lines as text without their LF."""
    for line in raw_lines(path):
        yield line.decode("utf-8")


def write(path: Path, lines: Iterable[str]) -> int:
    """Write lines, and return their number."""
    number = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(line + "\n")
            number += 1
    return number
