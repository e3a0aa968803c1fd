"""Read the numbers that the papers print.

This module imports only Python's standard library, so that recipes can use it without torch.

Each file of this folder is a table as the paper prints it. A row begins with its `keys`, which include the name of the
model in the paper and its encoding. After these keys come the cells of the `columns`. The other keys, and the
`conditions` of the whole table, say which model the row describes. If a paper prints a number in several tables, only
one file has the number. In the other files, the cell is missing or empty, and a comment names the table that has the
number. A row without an encoding describes no encoding of this package, or its numbers hold for all encodings.
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
    """Hold the content of a cell of a paper's table.

    Args:
        paper: Short name of the paper, as in citations.toml.
        row: Name of the model in the paper.
        printed: Text of the cell, with all its digits, its ± and its unit.
        encoding: Value for --pos-enc with options, such as `shaw[clip=16]`; for a fine-tuned model, the encoding in
            pretraining.
        conditions: Other facts that identify the model, such as `model`, `length` (tokens per sample) and `segments`
            (where fine-tuning adds segments: none, input or head).
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
        """Return the number without its ± and its unit; None for a formula or a dash."""
        number = re.fullmatch(r"([+-]?\d+(?:\.\d+)?(?:e-\d+)?)(?:±[\d.]+|[%KkM])?", self.printed)
        return float(number[1]) if number else None

    @property
    def of_test_set(self) -> bool:
        """Return whether GLUE's server gave the score, although the other rows of the table are of development sets."""
        published = "(Devlin et al., 2018)" in self.conditions.get("model", "")
        return (self.paper, self.table) == ("M1-M4", "Table 3") and published


def figures(
    paper: str,
    *,
    table: str | None = None,
    row: str | None = None,
    column: str | None = None,
    encoding: str | None = None,
    **conditions: object,
) -> list[Figure]:
    """Return the numbers of a paper that match all arguments, in the order of its tables and their rows.

    Args:
        encoding: The encoding as the tables write it; `recipes/lib/encodings.py` matches other spellings of options.
        conditions: Conditions that the numbers must match, such as `length=512`.
    """
    criteria = {"paper": paper, "table": table, "row": row, "column": column, "encoding": encoding}
    return [
        figure
        for figure in every()
        if all(getattr(figure, name) == value for name, value in criteria.items() if value is not None)
        and all(figure.conditions.get(name) == str(value) for name, value in conditions.items())
    ]


@cache
def every() -> tuple[Figure, ...]:
    """Return the numbers of all tables."""
    return tuple(figure for path in tables() for figure in read(path))


def tables() -> list[Path]:
    """Return the files of the tables, which are named PAPER_TABLE.toml."""
    return sorted(FOLDER.glob("*_*.toml"))


def read(path: Path) -> Iterator[Figure]:
    """Yield the numbers of a table, row by row. Skip empty cells.

    Raises:
        ValueError: The file is not a table of a paper; the message names it.
    """
    try:
        yield from _figures(path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path}: the file is not a table of a paper ({error!r}). Compare it with another table."
        ) from None


def _figures(path: Path) -> Iterator[Figure]:
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
