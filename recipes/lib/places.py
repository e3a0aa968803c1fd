"""Resolve the user's paths: they are relative to the current folder, but commands run in the repository."""

from __future__ import annotations

from pathlib import Path

from .values import Refused

RAW = "data/raw"  # folder of the repository to which fetch.py downloads the data of all recipes
OWN_FILES = Path("/path/to")  # placeholder folder in planned commands for files that the user must provide


def refuse_missing(option: str, *paths: str | Path) -> None:
    """Raise Refused if a path that an option names does not exist. Empty paths are skipped."""
    for path in paths:
        if path and not Path(path).exists():
            raise Refused(f"--{option} {path}: this file or folder does not exist.")


def raw(folder: str) -> str:
    """Return the path of --raw, the folder for downloads, for use in commands."""
    return folder if folder == RAW else str(Path(folder).resolve())
