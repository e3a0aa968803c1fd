"""checkpoint_last.pt and checkpoint_best.pt, which fairseq copies into place byte by byte (file_io.py:71)."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..core.writing import whole


def mend() -> None:
    """Copy beside the target, then rename: a run that is killed meanwhile leaves the old checkpoint, not half a one.

    A half checkpoint_last.pt made every later run fail until someone deleted it by hand.
    """
    from fairseq.file_io import IOPathManager, PathManager

    if IOPathManager is None:  # iopath has its own ways, for other storage too
        PathManager.copy = staticmethod(_copy)


def _copy(src_path: str, dst_path: str, overwrite: bool = False) -> str:
    with whole(Path(dst_path)) as partial:
        shutil.copyfile(src_path, partial)
    return dst_path
