"""fairseq's faults: each is first shown by calling what fairseq ships, then gone."""

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
    """A fresh interpreter with this checkout on its path."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **env}
    command = [sys.executable, "-c", textwrap.dedent(code), *args]
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=120, check=False)
