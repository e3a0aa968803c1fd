"""Translate commands to actions, where no training command contains `around right` (Loula et al. 2018).

The test commands contain phrases such as `walk around right`. Commands with `turn around right` are in no set.
"""

from __future__ import annotations

from .commands import split_by
from .task import Task


def part(words: list[str], actions: list[str]) -> str | None:
    command = " ".join(words)
    if "around right" not in command:
        return "train"
    return None if "turn around right" in command else "beyond"


TASK = Task("encoder-decoder", "actions", "Loula et al. 2018", None, split_by(part))
