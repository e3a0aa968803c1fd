"""Define the columns of the report's main table, for the page, the CSV file and the LaTeX table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .runs import SHOWN, Entry


class Cell(NamedTuple):
    """Hold a cell of the report's main table.

    Args:
        text: Text that the cell shows; empty if the value is missing.
        value: Number by which the table is sorted; None if the cell holds no number.
        within: Half the width of the 95 % interval of a score.
        full: The whole text, if `text` is shortened.
    """

    text: str
    value: float | None = None
    within: float | None = None
    full: str = ""


class Column(NamedTuple):
    """Define a column: its title, what it shows, whether it holds numbers, and a function that returns a row's cell."""

    title: str
    about: str
    numeric: bool
    cell: Callable[[Entry], Cell]


def columns(entries: Iterable[Entry]) -> list[Column]:
    """Return the columns that have a value in at least one row, in the order of the table."""
    entries = list(entries)
    every = [*FIRST, *map(_score, SHOWN), *LAST]
    return [column for column in every if any(column.cell(entry).text for entry in entries)]


def _score(title: str) -> Column:
    def cell(entry: Entry) -> Cell:
        score = entry.scores.get(title)
        return Cell(f"{score.value:.4g}", score.value, score.within) if score else Cell("")

    about = f"{title}, followed by ± and half the width of its 95 % confidence interval if this width is known"
    return Column(title, about, True, cell)


def _number(title: str, about: str, label: str, form: str) -> Column:
    def cell(entry: Entry) -> Cell:
        value = entry.numbers.get(label)
        return Cell("") if value is None else Cell(format(value, form), value)

    return Column(title, about, True, cell)


def _text(name: str) -> Callable[[Entry], Cell]:
    return lambda entry: Cell(getattr(entry, name))


def _seeds(entry: Entry) -> Cell:
    return Cell(str(entry.main.seeds), entry.main.seeds) if entry.main else Cell("")


def _commit(entry: Entry) -> Cell:
    short = [f"{name[:9]}{'-dirty' if name.endswith('-dirty') else ''}" for name in entry.commit.split(" then ")]
    return Cell(" then ".join(short), full=entry.commit)


FIRST = (
    Column("Encoding", "Value of --pos-enc, or the name of the model", False, _text("encoding")),
    Column("Options", "Value of --pos-enc-args", False, _text("options")),
)
LAST = (
    Column("Seeds", "Number of training runs", True, _seeds),
    Column("Recipe", "Folder in recipes/", False, _text("recipe")),
    Column("Task", "Task or data set, and length of the memory in evaluation", False, _text("task")),
    _number("Parameters", "Number of parameters of the whole model", "parameters", ",.0f"),
    _number("Words/s", "Speed of the training in words per second", "words per second in training", ",.0f"),
    _number("Minutes", "Duration of the training, in minutes", "minutes of training", ".1f"),
    Column("Run", "Folder of the run", False, _text("run")),
    Column("Commit", "Commit of the code", False, _commit),
)
