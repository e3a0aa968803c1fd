"""Copy rows of measurements from one page of the documentation into another, so that every number is written once.

A block of README.md names the page, words above the table, columns and rows (see `blocks.py`):

    <!-- derived: quote language-models.md | test perplexity by the length | memory 0; 150 | xl; t5 -->
"""

from __future__ import annotations

import re
from itertools import dropwhile
from pathlib import Path

from tabulate import tabulate

MARK = "quote "
Table = list[list[str]]
_CELLS = re.compile(r"(?<!\\)\|")


def quote(block: str, folder: Path) -> str:
    """Return a table with some rows and columns of a table on another page.

    Args:
        block: The text of the block after `derived: quote`.
        folder: The folder of the pages.

    Raises:
        ValueError: The page has no such table, or the table has no such column or row.
    """
    page, words, columns, rows = (part.strip() for part in block.removeprefix(MARK).split(" | "))
    head, *lines = _table(folder / page, words)
    wanted = [0, *(_index(head, column.strip(), f"{page}: the table has no column") for column in columns.split(";"))]
    labels = [_plain(line[0]) for line in lines]
    chosen = [lines[_index(labels, row.strip(), f"{page}: the table has no row")] for row in rows.split(";")]
    cells = [[_code(line[0]), *(line[column] for column in wanted[1:])] for line in chosen]
    alignment = ("left", *["right"] * (len(wanted) - 1))
    first = "`--pos-enc`" if head[0] in ("--pos-enc", "encoding", "decoder") else head[0]
    titles = [first, *(head[column] for column in wanted[1:])]
    return tabulate(cells, titles, tablefmt="pipe", disable_numparse=True, colalign=alignment)


def _table(page: Path, words: str) -> Table:
    """Return the head and the rows of the first table after a paragraph or heading that contains `words`."""
    paragraphs = page.read_text(encoding="utf-8").split("\n\n")
    after = dropwhile(lambda text: words not in " ".join(text.split()), paragraphs)
    table = next((text.strip() for text in after if text.lstrip().startswith("|")), None)
    if table is None:
        raise ValueError(f"{page.name} has no table after the words '{words}'. Quote words that stand before a table.")
    head, _, *lines = ([cell.strip() for cell in _CELLS.split(line.strip().strip("|"))] for line in table.splitlines())
    return [head, *lines]


def _index(names: list[str], name: str, problem: str) -> int:
    if name not in names:
        raise ValueError(f"{problem} '{name}'. Choose from: {', '.join(names)}.")
    return names.index(name)


def _plain(label: str) -> str:
    """Return the label of a row without backticks and without `(decoder)`."""
    return label.replace("`", "").removesuffix(" (decoder)")


def _code(label: str) -> str:
    """Put an encoding between backticks. Return a label with spaces, such as `German to English`, unchanged."""
    name, is_decoder = _plain(label), label.endswith(" (decoder)")
    return label if " " in name else f"`{name}`{' (decoder)' * is_decoder}"
