"""Start Python processes without importing fairseq, and wait for what processes do.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "fairseq_posenc"
STUB = f"""
import sys, types
plugin = sys.modules["fairseq_posenc"] = types.ModuleType("fairseq_posenc")
plugin.__path__ = [{str(PACKAGE)!r}]
"""


def without_fairseq(code: str, *arguments: str, flags: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs `code` without importing fairseq, which would take seconds."""
    return [sys.executable, *flags, "-c", STUB + code, *arguments]


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Wait at most 20 seconds until a condition holds, and fail at once if `process` ends before."""
    for _ in range(2000):
        if condition():
            return
        if process and process.poll() is not None:
            raise AssertionError(process.communicate())
        time.sleep(0.01)
    raise AssertionError("it never came")
