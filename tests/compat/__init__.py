"""Test the fixes of fairseq's faults: each test first shows the fault in fairseq, then that it is fixed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from fairseq_posenc import compat

compat.apply()
ROOT = Path(__file__).resolve().parents[2]


def run(code: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Return a command that runs code in a fresh interpreter with this checkout on its path."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **env}
    command = [sys.executable, "-c", textwrap.dedent(code), *args]
    return subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
