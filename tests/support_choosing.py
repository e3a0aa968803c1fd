"""Read the tables of docs/choosing.md and of the pages of recipes, which repeat the papers' numbers.

PYTEST_DONT_REWRITE: it is imported before it is named as a plugin.
"""

from __future__ import annotations

import re
from pathlib import Path

import blocks

ROOT = Path(__file__).resolve().parents[1]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
PAGE = PAGES["choosing"]
HAND = blocks.by_hand(PAGE)


def section(text: str, heading: str) -> str:
    """Return the text of the section with this heading, to the next heading of any level."""
    return text.partition(f"# {heading}\n")[2].partition("\n#")[0]


def quoted(text: str) -> list[str]:
    """Return every text between backticks."""
    return re.findall(r"`([^`\n]+)`", text)


def cells(text: str, head: str) -> list[list[str]]:
    """Return the rows of the table whose first line begins with `head`."""
    (block,) = re.findall(rf"^ *\| {re.escape(head)}.*\n *\|[-|: ]+\|\n((?: *\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
