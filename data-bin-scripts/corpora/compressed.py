"""Open plain or compressed files (.gz, .bz2, .xz, .zst) as streams of uncompressed bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, cast

from backports import zstd

from .errors import CorpusError

#: bytes per read
BLOCK = 1 << 20


OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": zstd.ZstdFile,  # unlike the package zstandard, reads all frames and detects a truncated file
}
#: exceptions that a damaged file raises, in any of the formats
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)


def opened(path: Path) -> IO[bytes]:
    """Return the uncompressed bytes of a file as a stream.

    Raises:
        CorpusError: The file does not exist, or cannot be read.
    """
    try:
        return cast(IO[bytes], OPENERS.get(path.suffix, lambda plain: plain.open("rb"))(path))
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}.") from None


def there(path: Path, ends: Iterable[str] = (".gz",)) -> Path | None:
    """Return the plain file if it exists, otherwise the first compressed file that exists, or None."""
    return next((file for end in ("", *ends) if (file := path.with_name(f"{path.name}{end}")).is_file()), None)


def damaged(path: Path, line: int, error: Exception) -> CorpusError:
    """Return the error for a file that cannot be read beyond this line."""
    return CorpusError.at(
        path, line, f"the file is damaged or incomplete from here on ({error}). Fetch the file again."
    )
