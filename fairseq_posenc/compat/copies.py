"""Write checkpoint_last.pt and checkpoint_best.pt atomically; fairseq's plain copy is not atomic (file_io.py:71)."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..core.writing import whole


def mend() -> None:
    """Make fairseq copy to a temporary file next to the target, and then rename the copy.

    So a run that is killed leaves the old checkpoint intact. An incomplete checkpoint_last.pt would make every later
    run fail until someone deletes it.
    """
    from fairseq.file_io import IOPathManager, PathManager

    if IOPathManager is None:  # iopath also copies to other storage, so its copy is kept
        PathManager.copy = staticmethod(_copy)


def _copy(src_path: str, dst_path: str, overwrite: bool = False) -> str:
    with whole(Path(dst_path)) as partial:
        shutil.copyfile(src_path, partial)
    return dst_path
