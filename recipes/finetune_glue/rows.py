"""The user's files of rows, wherever the reader looks (data-bin-scripts/glue/reading.py)."""

from __future__ import annotations

from pathlib import Path

from .tasks import TASKS
from .xnli import XNLI

ENDS = ("tsv", "tsv.gz", "txt", "txt.gz")  # of files with rows


def files(folder: Path, task: str) -> tuple[Path, ...]:
    """All that decide the task's rows; those that are missing are told by the stage."""
    found = of_task(folder, task)
    if task == "MNLI":  # the diagnostic set, which lies beside the tasks' folders
        found += [path for name in ("AX", "diagnostic") for path in sorted(folder.parent.glob(f"{name}.tsv*"))]
    if task == XNLI:  # GLUE's training file, a task's of its own
        found += [path for place in _places(folder, task) for path in sorted(place.glob("MNLI/train.tsv*"))]
    return tuple(found)


def of_task(folder: Path, task: str) -> list[Path]:
    """In the task's folders, and in the folder itself: there it may be of another task."""
    return [path for place in _places(folder, task) for end in ENDS for path in sorted(place.glob(f"*.{end}"))]


def _places(folder: Path, task: str) -> list[Path]:
    return [*(folder / name for name in (task, *TASKS[task].folders)), folder]
