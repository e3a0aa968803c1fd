"""Where files of the user's are: commands run in the repository, and the user may stand elsewhere."""

from __future__ import annotations

from pathlib import Path

from .values import Refused

RAW = "data/raw"  # of the repository: where fetch.py puts what all recipes share


def refuse_missing(option: str, *named: str | Path) -> None:
    """What an option names; nothing where it is unset."""
    for place in named:
        if place and not Path(place).exists():
            raise Refused(f"--{option} {place}: no such file or folder")


def raw(named: str) -> str:
    """The folder of --raw, as commands name it."""
    return named if named == RAW else str(Path(named).resolve())
