"""Read the numbers that the papers print. This file needs nothing but Python, so that recipes load it without torch.

A file of this folder is a table as the paper prints it. Each of its rows has the `keys` first, among them what the
paper calls the row and which encoding that is, and then what stands in the `columns`. The other keys, and the
`conditions` of the whole table, say which model the row is about. What a paper prints again in another table stands
only once here, and a comment says where; such cells are left out or empty. A row without an encoding is of none of
ours, or holds for all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Figure:
    """Hold what a cell of a paper's table prints.

    Args:
        paper: short name, as in citations.toml.
        row: what the paper calls the model.
        printed: the cell's text, with all its digits, its ± and its unit.
        encoding: for --pos-enc, with options: `shaw[clip=16]`; of the pretraining, if there is one.
        conditions: what else tells the model, such as `model`, `length` (of windows) and `segments` (that fine-tuning
            adds: none, input or head).
    """

    paper: str
    table: str
    row: str
    column: str
    printed: str
    unit: str
    encoding: str
    conditions: Mapping[str, str]

    @property
    def value(self) -> float | None:
        """The number without its ± and its unit; None for a formula or a dash."""
        number = re.fullmatch(r"([+-]?\d+(?:\.\d+)?(?:e-\d+)?)(?:±[\d.]+|[%KkM])?", self.printed)
        return float(number[1]) if number else None


def figures(
    paper: str,
    *,
    table: str | None = None,
    row: str | None = None,
    column: str | None = None,
    encoding: str | None = None,
    **conditions: object,
) -> list[Figure]:
    """Return a paper's figures for which all of this holds, in the order of its tables and their rows.

    Args:
        encoding: as the tables write it; `recipes/lib/encodings.py` matches options that are written otherwise.
        conditions: what the figures' conditions have to be, such as `length=512`.
    """
    asked = {"paper": paper, "table": table, "row": row, "column": column, "encoding": encoding}
    return [
        figure
        for figure in every()
        if all(getattr(figure, name) == wanted for name, wanted in asked.items() if wanted is not None)
        and all(figure.conditions.get(name) == str(wanted) for name, wanted in conditions.items())
    ]


@cache
def every() -> tuple[Figure, ...]:
    """Return the figures of all tables."""
    return tuple(figure for path in tables() for figure in read(path))


def tables() -> list[Path]:
    """Return the files of the tables: PAPER_TABLE.toml."""
    return sorted(FOLDER.glob("*_*.toml"))


def read(path: Path) -> Iterator[Figure]:
    """Yield the figures of a table, row by row; empty cells have none."""
    table = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=str)  # 84.10 stays 84.10
    keys, columns = table["keys"], table["columns"]
    for cells in table["rows"]:
        row = dict(zip([*keys, *columns], map(str, cells), strict=True))
        conditions = {name: str(value) for name, value in table.get("conditions", {}).items()}
        conditions |= {name: row[name] for name in keys}
        name, encoding = conditions.pop("row"), conditions.pop("encoding")
        for column in filter(row.get, columns):
            printed, unit = row[column], table["unit"]
            yield Figure(table["paper"], table["table"], name, column, printed, unit, encoding, conditions)
