"""What is wrong with a corpus, for its user."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

#: of what keeps what it has done
GOES_ON = "interrupted; run it again to go on from here"


class CorpusError(Exception):
    """The message names the file, the line and what to do."""

    @classmethod
    def at(cls, path: Path, line: int, what: str) -> CorpusError:
        """At a line, from 1."""
        return cls(f"{path}:{line}: {what}")


def exit_status(work: Callable[[], Path | None], interrupted: str = "interrupted") -> int:
    """Of a program: 0, 1 after an error, 130 after Ctrl-C; what is wrong is told.

    Args:
        work: returns the folder that is there now; None: it only looked.
        interrupted: what Ctrl-C means for what is done so far.
    """
    try:
        folder = work()
    except (CorpusError, OSError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print(interrupted, file=sys.stderr)
        return 130
    if folder is not None:
        print(f"{folder} is there", flush=True)
    return 0
