"""checkpoint_last.pt and checkpoint_best.pt, which fairseq copies into place byte by byte (file_io.py:71)."""

from __future__ import annotations

import os
import shutil
from typing import Any


def copy_whole() -> None:
    """Copy beside the target, then rename: a run that is killed meanwhile leaves the old checkpoint, not half a one.

    A half checkpoint_last.pt made every later run fail until someone deleted it by hand.
    """
    from fairseq.file_io import IOPathManager, PathManager

    if IOPathManager is None:  # iopath has its own ways, for other storage too
        PathManager.copy = staticmethod(copy)


def copy(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
    """PathManager.copy, whole or not at all."""
    partial = f"{dst_path}.partial"
    try:
        shutil.copyfile(src_path, partial)
        os.replace(partial, dst_path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise
    return dst_path
