"""Test that the papers' numbers in fairseq_posenc/papers/ equal those that were typed a second time.

The second table is in typed_again/, one file per paper. It was typed from the papers' texts and repeats whole tables,
with the numbers that fairseq_posenc/papers/ stores in another table of the paper. A row is its encoding with conditions
(`m4; length=576`) and its cells; an empty cell is not printed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fairseq_posenc.papers.reading import Figure, figures

SECOND = Path(__file__).parent / "typed_again"
PAPERS = ("M1-M4", "M4M", "LFHC", "DIET")


@dataclass(frozen=True)
class Cell:
    """Hold a number of the second table; `conditions` may include `row`, the name of a row without an encoding."""

    paper: str
    table: str
    column: str
    encoding: str
    conditions: Mapping[str, str]
    printed: str
    also: Mapping[str, str] = field(default_factory=dict)  # its place in the data: `column`, conditions

    def is_in(self, figure: Figure, column: str, where: Mapping[str, str]) -> bool:
        """Return whether a stored number has the cell's column, encoding and conditions, as far as it has them."""
        wanted = {**self.conditions, **where}
        if (figure.column, figure.encoding) != (column, self.encoding) or wanted.pop("row", figure.row) != figure.row:
            return False
        return all(figure.conditions.get(name, value) == value for name, value in wanted.items())

    def found(self, data: Sequence[Figure]) -> list[Figure]:
        """Return the stored number: in its own table, or else in another table of the paper."""
        own = [figure for figure in data if figure.table == self.table and self.is_in(figure, self.column, {})]
        where = dict(self.also)
        column = where.pop("column", self.column)
        return own or [figure for figure in data if self.is_in(figure, column, where)]

    def equals(self, figure: Figure) -> bool:
        """Return whether a stored number has these digits; in another table, it may have a ± besides."""
        return self.printed == (figure.printed if figure.table == self.table else figure.printed.partition("±")[0])


def cells(paper: str) -> Iterator[Cell]:
    """Yield the numbers of a paper's second table."""
    tables: list[dict[str, Any]] = tomllib.loads((SECOND / f"{paper.lower()}.toml").read_text("utf-8"))["tables"]
    for table in tables:
        for line in table["rows"].strip().splitlines():
            key, *numbers = (cell.strip() for cell in line.split("|"))
            for column, printed in zip(table["columns"], numbers, strict=True):
                name, label = (key, column) if table.get("transposed") else (column, key)
                encoding, *words = (part.strip() for part in label.split(";"))
                conditions = table.get("conditions", {}) | dict(word.split("=", 1) for word in words)
                if printed:
                    also = table.get("also", {}).get(name, {})
                    yield Cell(paper, table["name"], name, encoding, conditions, printed, also)


def differences(paper: str, data: Sequence[Figure]) -> list[str]:
    """Return a text for each number of a paper that the data and the second table do not share."""
    texts, compared = [], set()
    for cell in cells(paper):
        stored = cell.found(data)
        compared |= set(map(id, stored))
        if len(stored) != 1 or not cell.equals(stored[0]):
            texts.append(f"{cell}: stored {[figure.printed for figure in stored]}")
    return texts + [f"{figure}: not typed again" for figure in data if id(figure) not in compared]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_is_the_one_that_was_typed_again(paper: str) -> None:
    assert differences(paper, figures(paper)) == []
    assert len(figures(paper)) > 100


@pytest.mark.parametrize("paper", PAPERS)
def test_every_changed_digit_and_every_missing_number_is_found(paper: str) -> None:
    stored = figures(paper)
    changed = [replace(figure, printed=re.sub(r"\d(?=\D*$)", "x", figure.printed)) for figure in stored]
    assert len(differences(paper, changed)) >= sum(bool(re.search(r"\d", figure.printed)) for figure in stored)
    assert differences(paper, stored[1:])
    assert differences(paper, [*stored, replace(stored[0], column="invented")])
