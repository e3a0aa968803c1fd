"""Read the questions of a prepared folder, and the unit (such as words) in which questions are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recipes.lib.stages import read_json

from .settings import RECORD


def items(folder: Path, split: str) -> list[dict[str, Any]]:
    """Return the items of a split from its surface.jsonl.

    Raises:
        SystemExit: The folder has no such split.
    """
    path = folder / f"{split}.surface.jsonl"
    if not path.is_file():
        raise SystemExit(f"error: {path}: this file does not exist. Prepare the folder with prepare_questions.py.")
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def units(folder: Path) -> str:
    """Return the unit in which questions are compared: `words`, `spaces` (words between spaces) or `characters`."""
    return str(read_json(folder / RECORD)["units"])
