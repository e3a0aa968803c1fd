"""Unpack archives into a folder, and write nothing outside it.

For tar and zip alike, every name must be a plain path below the folder, and only folders and regular files are created.
If a link in a tar archive points to another file of the archive, it becomes a copy of that file. All other links and
all devices are refused. Hence no entry of an archive can write or read outside the folder through a link. `bounds.py`
limits the bytes that an archive may unpack to.

tarfile's `data` filter is less strict: it drops a leading slash, and has no counterpart for zip.
"""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from shared import whole

from .bounds import LEAST, Budget, RefusedError, uncompressed
from .errors import DiskFullError, FetchError, clear_when_full
from .record import sync

ARCHIVES = (".tar.gz", ".tar.xz", ".tar.bz2", ".tgz", ".tar", ".zip")
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, struct.error, EOFError, OSError),
    *(RuntimeError, ValueError, OverflowError),  # unknown, encrypted or undecodable entries
)
LEFT_OUT = "__MACOSX"  # folder with icons and the like, which macOS adds to its zip files


class Item(NamedTuple):
    name: str
    is_folder: bool
    open: Callable[[], IO[bytes] | None]


def target_of(name: str) -> str | None:
    """Return the name of the file or folder that an archive unpacks to, or None if `name` is not an archive."""
    for ending in (*ARCHIVES, ".gz"):
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return None


@contextmanager
def unpacked(archive: Path, final: Path) -> Iterator[None]:
    """Unpack an archive under a temporary name, and rename it to `final` if the block ends without an error.

    Raises:
        FetchError: The archive is damaged, holds an entry that is not allowed, or unpacks to too many bytes.
        DiskFullError: The disk has too little space.
    """
    with whole(final) as partial:
        try:
            with clear_when_full(final):
                _unpack(archive, partial, Budget(archive, final.parent))
        except DiskFullError:
            raise
        except (*BROKEN, RefusedError) as error:
            # tarfile lists its attempts after the first line
            reason = str(error).partition(":\n")[0].replace("\n", " ") or type(error).__name__
            again = "To fetch it again, delete the archive and its line in fetched.tsv."
            cure = "Use --no-unpack to keep the archive as it is." if isinstance(error, RefusedError) else again
            raise FetchError(f"{archive}: the archive cannot be unpacked: {reason}. {cure}") from error
        yield
    sync(final.parent)


def _unpack(archive: Path, target: Path, budget: Budget) -> None:
    if archive.name.endswith(ARCHIVES):
        _unpack_all(archive, target, budget)
        os.sync()  # once, as there may be a hundred thousand files
        return
    with gzip.open(archive) as packed, target.open("wb") as file:
        budget.copy(cast(IO[bytes], packed), file)
    sync(target)


def _unpack_all(archive: Path, folder: Path, budget: Budget) -> None:
    """Unpack all entries; if they all lie in a single top folder, leave that folder out of their paths."""
    folder.mkdir()
    items = _zip_items if archive.name.endswith(".zip") else _tar_items
    for item in items(archive, budget):
        path = _inside(folder, item.name)
        if path is None:
            continue
        budget.take(LEAST)
        (path if item.is_folder else path.parent).mkdir(parents=True, exist_ok=True)
        if not item.is_folder:
            _write(item, path, budget)
    tops = list(folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        return
    inner = folder.with_name(folder.name + ".inner")
    shutil.rmtree(inner, ignore_errors=True)
    os.replace(tops[0], inner)
    folder.rmdir()
    os.replace(inner, folder)


def _inside(folder: Path, name: str) -> Path | None:
    if name.startswith("/") or "\\" in name or "\0" in name or name[1:2] == ":":
        raise RefusedError(f"its entry {name!r} is not a relative path")
    parts = PurePosixPath(name).parts
    if ".." in parts:
        raise RefusedError(f"its entry {name!r} leads out of the folder of the archive")
    return None if not parts or parts[0] == LEFT_OUT else folder.joinpath(*parts)


def _write(item: Item, path: Path, budget: Budget) -> None:
    try:
        stream = item.open()
    except (KeyError, RecursionError):  # raised by tarfile for a link that leads nowhere, or to itself
        stream = None
    if stream is None:
        raise RefusedError(f"its entry {item.name!r} is a link that does not point to a file of the archive")
    with stream, path.open("wb") as file:
        budget.copy(stream, file)


def _tar_items(archive: Path, budget: Budget) -> Iterator[Item]:
    # tarfile itself would uncompress entries that are left out, and long headers, without a limit
    with uncompressed(archive, budget) as content, tarfile.open(fileobj=cast(IO[bytes], content), mode="r:") as tar:
        for member in tar:
            if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
                raise RefusedError(f"its entry {member.name!r} is a device or a pipe")
            yield Item(member.name, member.isdir(), lambda member=member: tar.extractfile(member))  # type: ignore[misc]
        # tarfile stops at the last entry; read on, so that the checksum of the compressed file is checked
        while content.read(1 << 20):
            pass


def _zip_items(archive: Path, budget: Budget) -> Iterator[Item]:
    with zipfile.ZipFile(archive) as packed:
        entries = packed.infolist()
        budget.check(sum(entry.file_size for entry in entries))
        for entry in entries:
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise RefusedError(f"its entry {entry.filename!r} is a link or a device")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                # for other methods, zipfile uncompresses without a limit into memory
                raise RefusedError(f"its entry {entry.filename!r} is not compressed by the method `deflate`")
            yield Item(entry.filename, entry.is_dir(), lambda entry=entry: packed.open(entry))  # type: ignore[misc]
