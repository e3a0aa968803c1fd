"""Save checkpoints either whole or not at all, and say in one line why a checkpoint cannot be saved.

fairseq copies a new checkpoint over checkpoint_last.pt and checkpoint_best.pt (checkpoint_utils.py:136), so a killed
process may leave an incomplete checkpoint. If writing fails, fairseq writes again at the place in the file where
the first attempt ended, leaves a .tmp file, and raises an error that does not name the checkpoint.

Two training runs in one folder write one after the other, so that neither of them renames half a file of the other.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..core.writing import whole
from .checkpoints import CheckpointError
from .patching import replace


def mend() -> None:
    """Make fairseq write and copy each checkpoint under a temporary name, and rename the file once it is complete."""
    from fairseq import checkpoint_utils
    from fairseq.file_io import PathManager

    replace(checkpoint_utils, "torch_persistent_save", _saved_whole)
    replace(PathManager, "copy", _copied_whole)


def _saved_whole(original: Callable[..., Any], state: Any, filename: str, async_write: bool = False) -> None:
    if async_write:  # iopath writes the file
        original(state, filename, async_write=True)
        return
    path = Path(filename)
    with _explained(path, _bytes(state)), _alone_in(path.parent), whole(path) as partial, partial.open("wb") as file:
        torch.save(state, file)


def _copied_whole(original: Callable[..., Any], src_path: str, dst_path: str, overwrite: bool = False) -> Any:
    from fairseq import file_io

    if file_io.IOPathManager:  # iopath also copies to other storage, so its copy is kept
        return original(src_path, dst_path, overwrite)
    source, path = Path(src_path), Path(dst_path)
    with _explained(path, source.stat().st_size), _alone_in(path.parent), whole(path) as partial:
        shutil.copyfile(source, partial)
    return dst_path


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock a folder for a `with` block, so that one process at a time writes checkpoints there; wait for the lock.

    The lock is not that of `core/locking.py`, which would leave a file among the user's checkpoints.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems cannot lock a folder
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)  # also ends the lock


@contextmanager
def _explained(path: Path, needed: int) -> Iterator[None]:
    """Raise a CheckpointError that names the file, if it cannot be written."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # torch raises RuntimeError after the OSError of the file
        raise CheckpointError(
            f"{path}: the checkpoint cannot be saved ({_reason(error)}). It needs about {needed:,} bytes, and "
            f"{_free(path.parent)} bytes are free in {path.parent}. Earlier checkpoints are unchanged. Free some "
            "space, or make the folder writable, and give the same command again to continue."
        ) from error


def _reason(error: BaseException | None) -> str:
    """Return the operating system's message if it caused the error; otherwise, return the error's first line."""
    first = error
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        error = error.__context__
    return str(first).splitlines()[0] if str(first) else type(first).__name__


def _free(folder: Path) -> str:
    try:
        return f"{shutil.disk_usage(folder).free:,}"
    except OSError:  # the folder has disappeared
        return "no"


def _bytes(value: Any) -> int:
    """Return the size of all tensors in a checkpoint, in bytes."""
    if isinstance(value, torch.Tensor):
        return value.nbytes
    if isinstance(value, Mapping):
        return sum(map(_bytes, value.values()))
    return sum(map(_bytes, value)) if isinstance(value, (list, tuple)) else 0
