"""Run commands that end together with the process that started them, even if this process is killed.

A process that is killed by SIGKILL cannot end its commands. Therefore this file also runs as a small program between
the process and its command. The program starts the command, and ends the command as soon as the process no longer
exists. This program needs only the standard library and starts in a few milliseconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

PAUSE = 0.5  # seconds between two checks whether the process still exists
GRACE = 10.0  # seconds from SIGTERM to SIGKILL for a command and the processes that it started


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a command with `subprocess.Popen`; the command ends when this process ends.

    To end the command earlier, call `terminate()`. `kill()` would leave the command running.
    """
    program = [sys.executable, "-I", "-S", __file__, str(os.getpid())]
    return subprocess.Popen([*program, *command], **options)


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command and return its result; the command also ends when this process ends."""
    with start(command, text=True, **options) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            process.terminate()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output)


def main(parent: int, command: list[str]) -> int:
    """Run the command in a process group of its own, for as long as the process `parent` exists.

    Returns:
        The exit status of the command. As in a shell, the status is 128 plus the signal's number if a signal ended the
        command, and 127 if the command cannot be started.
    """
    os.setpgrp()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if os.getppid() == parent:
            process = subprocess.Popen(command)
        while os.getppid() == parent:
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(PAUSE)
                return status if status >= 0 else 128 - status
    except OSError as error:
        print(f"error: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    except (SystemExit, KeyboardInterrupt):
        pass
    end_group()
    return 128 + signal.SIGTERM


def end_group() -> None:
    """End the process group: the command, the processes that it started, and finally this program itself."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    with suppress(ChildProcessError):
        while time.monotonic() < deadline:
            os.waitpid(-1, os.WNOHANG)
            time.sleep(0.02)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
