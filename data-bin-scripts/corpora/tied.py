"""Runs a command that ends, with all processes that it started, when the run does that asked for it.

By a program between the two: the run may be killed in a way that it cannot see itself, and the commands are others'.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

#: seconds between two looks at the run
PAUSE = 0.1


def run(command: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """As subprocess.run, which would kill the program between, and not what that watches."""
    between = [sys.executable, "-P", __file__, str(os.getpid()), *command]
    with subprocess.Popen(between, text=True, **more) as process:
        try:
            told, _ = process.communicate()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    return subprocess.CompletedProcess(command, process.returncode, told)


def main(asked: int, command: list[str]) -> int:
    """Args:
    asked: the process of the run.
    """
    # a group of its own: a pool's processes live on where only the one that started them is killed
    with subprocess.Popen(command, process_group=0) as process:
        try:
            while process.poll() is None and os.getppid() == asked:
                time.sleep(PAUSE)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
