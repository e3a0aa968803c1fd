"""Files and folders that are complete or absent. The standard library alone: recipes and data scripts load this file
without the package, whose import needs torch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes the place of `path` if the block ends without an error.

    The block may write a file or make a folder there. A folder replaces a folder, a file replaces a file. After an
    error, or when the process is killed, `path` still holds what it held before.

    Raises:
        FileNotFoundError: The block wrote nothing.
        OSError: The disk is full, or `path` cannot be replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    _remove(partial)  # a killed run left it
    try:
        yield partial
        if partial.is_dir() and path.is_dir():
            shutil.rmtree(path)  # os.replace refuses to replace a folder that holds files
        os.replace(partial, path)
    finally:
        _remove(partial)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a new, empty folder, which takes the place of `path` if the block ends without an error (see `whole`)."""
    with whole(path) as partial:
        partial.mkdir()
        yield partial


def write_whole(path: Path, text: str) -> None:
    """Write a text file in UTF-8 that is complete or absent (see `whole`)."""
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
