"""The error that tells a user what is wrong with a corpus."""

from __future__ import annotations

from pathlib import Path


class CorpusError(Exception):
    """The message names the file, the line and what to do."""

    @classmethod
    def at(cls, path: Path, line: int, what: str) -> CorpusError:
        """At a line, from 1."""
        return cls(f"{path}:{line}: {what}")
