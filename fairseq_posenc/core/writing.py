"""Write files and folders that are either complete or absent.

This file imports the standard library only: recipes and data scripts load it without the package, which needs torch.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

#: Errors of a full disk, an exhausted quota, and a file that is larger than the system allows.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class NoSpaceError(OSError):
    """Report that a file or folder does not fit on the disk; `filename` is its path.

    The error of the operating system names neither the path nor the bytes.
    """

    needed = "an unknown number of bytes"

    def __str__(self) -> str:
        folder = Path(self.filename).parent
        return (
            f"{self.filename}: the disk is full ({self.strerror}). This path needs {self.needed}, and "
            f"{free_bytes(folder)} bytes are free in {folder}. Free some space, raise the quota, or choose another "
            "disk, and run the command again."
        )


@contextmanager
def named_when_full(path: Path, size: int | None = None, partial: Path | None = None) -> Iterator[None]:
    """Raise a NoSpaceError that names `path` if the disk becomes full inside the block.

    Args:
        size: Number of bytes of the whole file; None: unknown, so the error says how many bytes were written.
        partial: Path to which the block writes the bytes (None: `path`).
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, NoSpaceError) or not (error.errno in FULL or _is_from_numpy(error)):
            raise
        full = NoSpaceError(error.errno or errno.ENOSPC, error.strerror or str(error), str(path))
        full.needed = f"more than {_written(partial or path):,} bytes" if size is None else f"{size:,} bytes"
        raise full from error


@contextmanager
def whole(path: Path, size: int | None = None) -> Iterator[Path]:
    """Yield a temporary path next to `path`, which replaces `path` if the `with` block ends without an error.

    The block may write a file or make a folder at the temporary path. A folder replaces a folder, and a file replaces a
    file. If the block raises an error, or the process is killed, `path` keeps its old content.

    Args:
        size: Number of bytes that the block writes, for the error of a full disk (None: unknown).

    Raises:
        FileNotFoundError: The block wrote nothing.
        NoSpaceError: The disk is full.
        OSError: `path` cannot be replaced.
    """
    partial = path.with_name(f"{path.name}.partial")
    with named_when_full(path, size, partial):
        path.parent.mkdir(parents=True, exist_ok=True)
    _remove(partial)  # left by a process that was killed
    try:
        with named_when_full(path, size, partial):
            yield partial
            if partial.is_dir() and path.is_dir():
                shutil.rmtree(path)  # os.replace refuses to replace a folder that holds files
            os.replace(partial, path)
    finally:
        _remove(partial)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a new, empty folder, which replaces `path` if the block ends without an error (see `whole`)."""
    with whole(path) as partial:
        partial.mkdir()
        yield partial


def write_whole(path: Path, text: str) -> None:
    """Write a text file in UTF-8 so that it is either complete or absent (see `whole`)."""
    write_all_whole({path: text})


def write_all_whole(texts: Mapping[Path, str]) -> None:
    """Write text files in UTF-8, and replace the old files only after all new ones are complete (see `whole`)."""
    with ExitStack() as stack:
        for path, text in texts.items():
            partial = stack.enter_context(whole(path, len(text.encode())))
            partial.write_text(text, encoding="utf-8", newline="\n")


def free_bytes(folder: Path) -> str:
    """Return the number of free bytes for a message, of the closest parent folder if the folder does not exist."""
    existing = next((place for place in (folder, *folder.parents) if place.is_dir()), Path())
    return f"{shutil.disk_usage(existing).free:,}"


def _is_from_numpy(error: OSError) -> bool:
    """Return whether numpy could not write all numbers of an array; its error has no `errno`."""
    return error.errno is None and " requested and " in str(error)


def _written(path: Path) -> int:
    """Return the number of bytes in a file, or in all files of a folder; 0 if nothing exists at the path."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
