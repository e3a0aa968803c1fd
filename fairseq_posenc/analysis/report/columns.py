"""Define the columns of the report's main table, for the page, the CSV file and the LaTeX table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..results import Score
from .runs import SHOWN, Entry, title_of


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
    scores = list(dict.fromkeys(title_of(name) for name in SHOWN))
    every = [*FIRST, *map(_score_column, scores), *LAST]
    return [column for column in every if any(column.cell(entry).text for entry in entries)]


def _score(entry: Entry, title: str) -> Score | None:
    return next((score for name, score in entry.scores.items() if title_of(name) == title), None)


def _score_column(title: str) -> Column:
    def cell(entry: Entry) -> Cell:
        score = _score(entry, title)
        if score is None:
            return Cell("")
        return Cell(f"{score.value:.4g}", score.value, score.within)

    return Column(
        title,
        f"{title}, followed by ± and half the width of its 95 % confidence interval if this width is known",
        True,
        cell,
    )


def _text(name: str) -> Callable[[Entry], Cell]:
    return lambda entry: Cell(str(getattr(entry, name)))


def _number(name: str, form: str) -> Callable[[Entry], Cell]:
    def cell(entry: Entry) -> Cell:
        value = getattr(entry, name)
        return Cell("") if value is None else Cell(format(value, form), value)

    return cell


def _seeds(entry: Entry) -> Cell:
    return Cell(str(entry.main.seeds), entry.main.seeds) if entry.main else Cell("")


def _speed(entry: Entry) -> Cell:
    return Cell("") if entry.speed is None else Cell(f"{entry.speed:,.0f} {entry.speed_unit}", entry.speed)


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
    Column("Task", "Task or data set, language, and length of the memory in evaluation", False, _text("task")),
    Column("Parameters", "Number of parameters of the whole model", True, _number("parameters", ",.0f")),
    Column("Speed", "Speed of the training", True, _speed),
    Column(
        "Step",
        "Time per training update, divided by the time with the run's first encoding",
        True,
        _number("step", ".2f"),
    ),
    Column("MB", "Peak memory during translation, in MB", True, _number("memory", ",.0f")),
    Column("Minutes", "Duration of the training, in minutes", True, _number("minutes", ".1f")),
    Column("Run", "Folder of the run", False, _text("run")),
    Column("Commit", "Commit of the code", False, _commit),
)
