"""Start Python processes without importing fairseq.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

import sys
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
