"""Write files and folders that are either complete or absent.

This file imports the standard library only: recipes and data scripts load it without the package, which needs torch.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, which replaces `path` if the `with` block ends without an error.

    The block may write a file or make a folder at the temporary path. A folder replaces a folder, and a file replaces a
    file. If the block raises an error, or the process is killed, `path` keeps its old content.

    Raises:
        FileNotFoundError: The block wrote nothing.
        OSError: The disk is full, or `path` cannot be replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    _remove(partial)  # left by a process that was killed
    try:
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
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
