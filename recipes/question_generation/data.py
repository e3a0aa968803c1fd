"""What the stages read of a prepared folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recipes.lib.stages import read_json

from .settings import RECORD


def items(folder: Path, split: str) -> list[dict[str, Any]]:
    """The lines of surface.jsonl.

    Raises:
        SystemExit: there is no such split.
    """
    path = folder / f"{split}.surface.jsonl"
    if not path.is_file():
        raise SystemExit(
            f"error: {path}: no such file; {folder} has no {split}, or was not made by prepare_questions.py"
        )
    with path.open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def units(folder: Path) -> str:
    """By which its questions are compared."""
    return str(read_json(folder / RECORD)["units"])
