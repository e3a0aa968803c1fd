"""The papers' numbers as METHODS.md has them: beside the folder of the data, or in shared/ beside the repository.

PYTEST_DONT_REWRITE: it asserts nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACES = [Path(os.environ.get("POSENC_DATA") or "not given").parent, ROOT.parent / "shared"]
METHODS = next((path for place in PLACES if (path := place / "METHODS.md").is_file()), Path("not given"))
needs_methods = pytest.mark.skipif(not METHODS.is_file(), reason="there is no METHODS.md")

Rows = dict[str, tuple[float, ...]]


def section(number: str) -> str:
    """As `6.A`, with its heading."""
    (found,) = re.findall(rf"^### {re.escape(number)} .*?(?=^##)", METHODS.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return str(found)


def rows(text: str, begin: str, end: str) -> Rows:
    """By name, the numbers of what stands between `begin` and `end`: `Abs 81.25/90.25; Shaw 82.88/91.28`."""
    inside = text.partition(begin)[2].partition(end)[0]
    made: Rows = {}
    for part in re.split(r"[;·]|,(?=\s*[^\d\s])", inside):
        if found := re.match(r"\s*(.*?):? ((?:\d+\.\d+[/, ]*)+)", part):
            made[found[1]] = tuple(map(float, re.findall(r"\d+\.\d+", found[2])))
    return made
