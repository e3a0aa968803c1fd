"""Test that the papers' numbers in fairseq_posenc/papers/ equal those that were typed a second time.

The second table is in typed_again/, one file per paper. It was typed from the papers' texts and repeats whole tables,
with the numbers that fairseq_posenc/papers/ stores in another table of the paper. A row is its encoding with conditions
(`m4; length=576`) and its cells; an empty cell is not printed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairseq_posenc.papers.reading import Figure, figures

SECOND = Path(__file__).parent / "typed_again"
PAPERS = ("M1-M4", "M4M", "LFHC", "DIET")


class Cell(NamedTuple):
    """Hold a number of the second table.

    `facts` are its column and encoding, conditions, and the name of a row without an encoding. `also` has the facts
    that it has in another table of the data.
    """

    table: str
    facts: Mapping[str, str]
    also: Mapping[str, str]
    printed: str


def cells(paper: str) -> Iterator[Cell]:
    """Yield the numbers of a paper's second table."""
    tables: list[dict[str, Any]] = tomllib.loads((SECOND / f"{paper.lower()}.toml").read_text("utf-8"))["tables"]
    for table in tables:
        for line in table["rows"].strip().splitlines():
            key, *numbers = (cell.strip() for cell in line.split("|"))
            for column, printed in zip(table["columns"], numbers, strict=True):
                name, label = (key, column) if table.get("transposed") else (column, key)
                encoding, *words = (part.strip() for part in label.split(";"))
                facts = {"column": name, "encoding": encoding, **table.get("conditions", {})}
                facts |= dict(word.split("=", 1) for word in words)
                if printed:
                    yield Cell(table["name"], facts, table.get("also", {}).get(name, {}), printed)


def has(figure: Figure, facts: Mapping[str, str]) -> bool:
    """Return whether a stored number has these facts; a condition that it does not have may be anything."""
    own = {"column": figure.column, "encoding": figure.encoding, "row": figure.row, **figure.conditions}
    return all(own.get(name, value) == value for name, value in facts.items())


def stored(cell: Cell, data: Sequence[Figure]) -> list[Figure]:
    """Return the stored number: in its own table, or else in another table of the paper."""
    own = [figure for figure in data if figure.table == cell.table and has(figure, cell.facts)]
    anywhere = {**cell.facts, **cell.also}
    return own or [figure for figure in data if has(figure, anywhere)]


def equal(cell: Cell, figure: Figure) -> bool:
    """Return whether a stored number has these digits; in another table, it may have a ± besides."""
    return cell.printed == (figure.printed if figure.table == cell.table else figure.printed.partition("±")[0])


def differences(paper: str, data: Sequence[Figure]) -> list[str]:
    """Return a text for each number of a paper that the data and the second table do not share."""
    texts, compared = [], set()
    for cell in cells(paper):
        found = stored(cell, data)
        compared |= set(map(id, found))
        if len(found) != 1 or not equal(cell, found[0]):
            texts.append(f"{cell}: stored {[figure.printed for figure in found]}")
    return texts + [f"{figure}: not typed again" for figure in data if id(figure) not in compared]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_number_is_the_one_that_was_typed_again(paper: str) -> None:
    assert differences(paper, figures(paper)) == []
    assert len(figures(paper)) > 100


@pytest.mark.parametrize("paper", PAPERS)
def test_every_changed_digit_and_every_missing_number_is_found(paper: str) -> None:
    data = figures(paper)
    changed = [replace(figure, printed=re.sub(r"\d(?=\D*$)", "x", figure.printed)) for figure in data]
    assert len(differences(paper, changed)) >= sum(bool(re.search(r"\d", figure.printed)) for figure in data)
    assert differences(paper, data[1:])
    assert differences(paper, [*data, replace(data[0], column="invented")])
