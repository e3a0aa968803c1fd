"""Split docs/which-encoding.md into its handwritten text, its sections, and its tables of the papers' numbers.

PYTEST_DONT_REWRITE: it is imported before it is named as a plugin.
"""

from __future__ import annotations

import re
from pathlib import Path

import blocks

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "which-encoding.md").read_text(encoding="utf-8")
HAND = blocks.by_hand(PAGE)


def sections(text: str) -> dict[str, str]:
    """Return the text of each section by the anchor of its heading."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    anchors = (re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in parts[::2])
    return dict(zip(anchors, parts[1::2], strict=True))


def quoted(text: str) -> list[str]:
    """Return every text between backticks."""
    return re.findall(r"`([^`\n]+)`", text)


def cells(text: str, head: str) -> list[list[str]]:
    """Return the rows of the table whose first line begins with `head`."""
    (block,) = re.findall(rf"^ *\| {re.escape(head)}.*\n *\|[-|: ]+\|\n((?: *\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
