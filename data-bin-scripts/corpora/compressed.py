"""Open plain or compressed files (.gz, .bz2, .xz, .zst) as streams of uncompressed bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from .errors import CorpusError

#: bytes per read
BLOCK = 1 << 20


class _Zstd(io.RawIOBase):
    """Read all frames of a zstd file; pzstd and `cat` write files of several frames.

    zstandard's own stream ends with the first frame, and does not detect a truncated file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun, self._rest, self._packed = False, b"", b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        while not self._rest and self._more():
            pass
        size = min(len(into), len(self._rest))
        into[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def _more(self) -> bool:
        packed = self._packed or self._file.read(1 << 16)
        if self._frame.eof:
            self._frame, self._begun = zstandard.ZstdDecompressor().decompressobj(), False
        if not packed:
            if self._begun:
                raise EOFError("the file ends within a zstd frame")
            return False
        self._rest, self._begun = self._frame.decompress(packed), True
        self._packed = self._frame.unused_data
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda path: io.BufferedReader(_Zstd(path), BLOCK),
}
#: exceptions that a damaged file raises, in any of the formats
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


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
    return CorpusError.at(path, line, f"the file is damaged or incomplete from here on ({error}). Fetch it again.")
