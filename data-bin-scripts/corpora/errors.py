"""Define the error that tells a user what is wrong with a corpus."""

from __future__ import annotations

from pathlib import Path


class CorpusError(Exception):
    """Report an error in the user's data or options; the message names the file, the line and what to do."""

    @classmethod
    def at(cls, path: Path, line: int, what: str) -> CorpusError:
        """Return an error that names a line of a file; lines count from 1."""
        return cls(f"{path}:{line}: {what}")
