"""Where files of the user's are: commands run in the repository, and the user may stand elsewhere."""

from __future__ import annotations

from pathlib import Path

RAW = "data/raw"  # of the repository: where fetch.py puts what all recipes share


def raw(named: str) -> str:
    """The folder of --raw, as commands name it."""
    return named if named == RAW else str(Path(named).resolve())
