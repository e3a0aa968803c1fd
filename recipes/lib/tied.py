"""Run commands that end when the process that started them ends, whatever ended it.

A process that is killed by SIGKILL cannot end its commands. Therefore a small program runs between the two: this file.
It starts the command, looks whether the process that asked for it is still there, and ends the command if not. It needs
the standard library only and starts in some milliseconds.
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

PAUSE = 0.5  # seconds between two looks at the process that asked
GRACE = 10.0  # seconds that a command has to end after SIGTERM; then SIGKILL ends whatever it started


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a command as `subprocess.Popen` does, tied to this process.

    End it by `terminate()`. `kill()` would end the program between, and leave the command.
    """
    program = [sys.executable, "-I", "-S", __file__, str(os.getpid())]
    return subprocess.Popen([*program, *command], **options)


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as `subprocess.run` does, tied to this process."""
    with start(command, text=True, **options) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            process.terminate()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output)


def main(asked: int, command: list[str]) -> int:
    """Run the command in a process group of its own, for as long as the process `asked` is there.

    Returns:
        Its exit status; as in a shell, 128 and the signal if one ended it, and 127 if it cannot be started.
    """
    os.setpgrp()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if os.getppid() == asked:
            process = subprocess.Popen(command)
        while os.getppid() == asked:
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
    """End the command and what it started, at last this program itself, which is in the same process group."""
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
