"""Save checkpoints either whole or not at all.

fairseq copies a new checkpoint over checkpoint_last.pt and checkpoint_best.pt (checkpoint_utils.py:136), so a killed
process may leave an incomplete checkpoint. If writing fails, fairseq writes again at the place in the file where the
first attempt ended. Two training runs in one folder write one after the other, so that neither of them renames half a
file of the other.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..core.refusal import described
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
    with _whole(Path(filename)) as partial, partial.open("wb") as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # the full disk, which `whole` explains
                raise error.__context__ from error
            raise


def _copied_whole(original: Callable[..., Any], src_path: str, dst_path: str, overwrite: bool = False) -> Any:
    from fairseq import file_io

    if file_io.IOPathManager:  # iopath also copies to other storage, so its copy is kept
        return original(src_path, dst_path, overwrite)
    with _whole(Path(dst_path)) as partial:
        shutil.copyfile(src_path, partial)
    return dst_path


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path as `whole` does, to one process at a time for each folder; wait for the others.

    The lock is not that of `core/locking.py`, which would leave a file among the user's checkpoints.

    Raises:
        CheckpointError: The checkpoint cannot be written.
    """
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path.parent, os.O_RDONLY)
            stack.callback(os.close, descriptor)  # also ends the lock
            with contextlib.suppress(OSError):  # some network file systems cannot lock a folder
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            with whole(path) as partial:
                yield partial
        except OSError as error:
            raise CheckpointError(
                f"{path}: the checkpoint cannot be saved. {described(error)} Earlier checkpoints are unchanged. Give "
                "the same command again to continue."
            ) from error
