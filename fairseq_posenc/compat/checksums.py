"""Check the checksums in a checkpoint, because torch.load ignores them and loads damaged weights without an error.

torch.save writes zip archives, which have a CRC-32 of each part. Files in the old format have no checksums.
"""

from __future__ import annotations

import contextlib
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

_MAGIC = b"PK\x03\x04"  # the first bytes by which torch.load recognises a zip archive
_WEIGHTS = re.compile(r"/data/\d+$")  # names of the parts that hold tensors
_PROGRAM = re.compile(r"^[^/]+/code/")  # names of the parts of a TorchScript program, which is refused without reading
_CHUNK = 1 << 20  # bytes


class DamagedError(Exception):
    """Raised if the content of a file does not match its checksums, or is compressed."""


def check(file: Any, *, weights: bool = True) -> bool:
    """Compare the parts of a checkpoint with their checksums, and return whether the file has checksums.

    Args:
        file: A path or an open file, whose position is restored. Files in memory are not checked.
        weights: Whether to check the tensors, too, which takes nearly all of the time.

    Raises:
        DamagedError: A checksum is wrong, a part is compressed, or the archive cannot be read.
        OSError: The file cannot be opened.
    """
    if not isinstance(file, (str, os.PathLike)) and not hasattr(file, "name"):
        return True
    with _opened(file) as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            return False
        try:
            return _check_parts(stream, weights)
        except DamagedError:
            raise
        except Exception as error:  # a flipped bit in the list of parts may cause any error of zipfile
            raise DamagedError(f"its list of parts is damaged ({error})") from error


def newest_undamaged(folder: Path, *, besides: Path | None = None) -> Path | None:
    """Return the newest checkpoint in a folder that has checksums and matches them, or None if there is none."""
    paths = [path for path in folder.glob("checkpoint*.pt") if path.is_file() and path != besides]
    newest_first = sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)
    return next((path for path in newest_first if _is_undamaged(path)), None)


def _is_undamaged(path: Path) -> bool:
    try:
        return check(path)
    except (DamagedError, OSError):
        return False


@contextlib.contextmanager
def _opened(file: Any) -> Iterator[IO[bytes]]:
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as stream:
            yield stream
        return
    position = file.tell()
    try:
        yield file
    finally:
        file.seek(position)


def _check_parts(stream: IO[bytes], weights: bool) -> bool:
    with zipfile.ZipFile(stream) as archive:
        parts = [part for part in archive.infolist() if part.file_size]
        _refuse_compressed(parts)
        if not any(part.CRC for part in parts):  # torch.serialization.set_crc32_options(False) writes zeros
            return False
        for part in parts:
            if weights or not _WEIGHTS.search(part.filename):
                _check_part(archive, part)
    return True


def _refuse_compressed(parts: list[zipfile.ZipInfo]) -> None:
    """Raise a DamagedError if a part is compressed, because torch.load uncompresses it without a limit into memory."""
    for part in parts:
        if part.compress_type != zipfile.ZIP_STORED and not _PROGRAM.search(part.filename):
            raise DamagedError(
                f"its part {part.filename} is compressed, which torch.save never does, and may be a decompression bomb"
            )


def _check_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    try:
        with archive.open(part) as content:
            while content.read(_CHUNK):
                pass
    except zipfile.BadZipFile as error:
        raise DamagedError(f"the part {part.filename} does not match its checksum") from error
