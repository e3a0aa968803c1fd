"""List all tasks: the name of each one, and the module in this folder that defines it."""

from __future__ import annotations

import importlib

from recipes.lib.package import nearest
from recipes.lib.values import Refused

from .task import Task

TASKS = {
    "copy": "copying",
    "reverse": "reverse",
    "sort": "sort",
    "parity": "parity",
    "flip-flop": "flip_flop",
    "addition": "addition",
    "addition-reversed": "addition_reversed",
    "addition-hints": "addition_hints",
    "recall": "recall",
    "passkey": "passkey",
    "reverse-tags": "reverse_tags",
    "sort-tags": "sort_tags",
    "scan-length": "scan_length",
    "scan-template": "scan_template",
    "pcfg": "pcfg",
}


def task(name: str) -> Task:
    """Return a task.

    Raises:
        Refused: There is no task of this name.
    """
    if name not in TASKS:
        raise Refused(f"--tasks {name}: there is no task '{name}'{nearest(name, TASKS)}")
    chosen: Task = importlib.import_module(f".{TASKS[name]}", __package__).TASK
    return chosen
