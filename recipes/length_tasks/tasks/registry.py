"""List all tasks by name."""

from __future__ import annotations

from . import addition, pcfg, recall, scan, strings
from .task import Task

TASKS: dict[str, Task] = {**strings.TASKS, **addition.TASKS, **recall.TASKS, **scan.TASKS, **pcfg.TASKS}
