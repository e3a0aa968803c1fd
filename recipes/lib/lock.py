"""One run at a time in a folder."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from .outputs import making
from .screen import Screen
from .values import Refused

# A command that a killed run had forked, but that has not begun, holds the run's lock for a moment.
PATIENCE = 1.0


@contextmanager
def only_one(folder: Path, screen: Screen) -> Iterator[int]:
    """Hold the folder and give the descriptor that commands are to inherit.

    Two locks, because two things may be at work here. Another run is refused: it may take days. A command that a
    killed run left running holds the second one only; it is waited for, not written over.
    """
    with ExitStack() as opened:
        with making(folder):
            folder.mkdir(parents=True, exist_ok=True)
            run, commands = (opened.enter_context((folder / name).open("w")) for name in (".run.lock", ".lock"))
        if not taken(run, PATIENCE):
            raise Refused(f"another run is at work in {folder}: wait for it, or choose another folder with --output")
        if not taken(commands):
            screen.line(f"waiting: a command that a killed run left is at work in {folder}")
            fcntl.flock(commands, fcntl.LOCK_EX)
        yield commands.fileno()


def taken(file: TextIO, patience: float = 0.0) -> bool:
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True
