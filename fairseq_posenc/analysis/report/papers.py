"""Collect the papers' tables that recipes reproduce: each number with our score or the command that computes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ...core.options import describe
from ...encodings import get
from ...encodings.building import parse
from ...encodings.registry import kind_of
from ...papers.matching import PRETRAINED, are_those_of, option_values
from ...papers.reading import Figure, every
from ..results import Score, is_number
from .runs import Entry
from .targets import PLACES, Target, reason_of, target_of

#: What the label of a fine-tuned model adds for each kind of segment encoding.
SEGMENTS = {"none": "", "input": "+segments-input", "head": "+segments"}


class PaperCell(NamedTuple):
    """Hold a paper's number with our score and what differs, with the command for our score, or with a reason.

    The reason says why no recipe computes the number.
    """

    printed: str
    ours: Score | None
    differs: str
    command: str
    reason: str = ""


class PaperTable(NamedTuple):
    """Hold a table of a paper: its title, its columns, and its rows, keyed by their names and conditions."""

    title: str
    columns: list[str]
    rows: dict[str, dict[str, PaperCell]]

    @property
    def filled(self) -> int:
        """Return how many cells have a score of a recipe run."""
        return sum(cell.ours is not None for row in self.rows.values() for cell in row.values())


def paper_tables(entries: Sequence[Entry]) -> list[PaperTable]:
    """Return the papers' tables that the recipes of the runs reproduce."""
    recipes = {entry.recipe for entry in entries}
    tables: dict[str, PaperTable] = {}
    for figure in every():
        if (figure.paper, figure.table) not in _reproduced_by(tuple(sorted(recipes))):
            continue
        title = f"{figure.paper}, {figure.table} ({figure.unit})"
        table = tables.setdefault(title, PaperTable(title, [], {}))
        target = target_of(figure)
        if target and target.recipe not in recipes:
            continue
        if figure.column not in table.columns:
            table.columns.append(figure.column)
        cell = _cell(figure, target, entries) if target else PaperCell(figure.printed, None, "", "", reason_of(figure))
        table.rows.setdefault(_row_name(figure), {})[figure.column] = cell
    return sorted(tables.values(), key=lambda table: table.filled == 0)  # those with our numbers first


@cache
def _reproduced_by(recipes: tuple[str, ...]) -> set[tuple[str, str]]:
    """Return the tables, as paper and table, of which these recipes reproduce a number."""
    targets = ((figure, target_of(figure)) for figure in every())
    return {(figure.paper, figure.table) for figure, target in targets if target and target.recipe in recipes}


def _row_name(figure: Figure) -> str:
    shown = [figure.conditions[name] for name in ("model", "segments", "length") if name in figure.conditions]
    return ", ".join([f"{figure.row}: {figure.encoding}", *shown])


def _cell(figure: Figure, target: Target, entries: Iterable[Entry]) -> PaperCell:
    entry = next((entry for entry in entries if _repeats(entry, figure, target)), None)
    if entry is None:
        return PaperCell(figure.printed, None, "", target.command)
    differs = entry.facts.get("differs from the paper")
    text = ", ".join(differs) or "comparable" if isinstance(differs, list) else ""
    return PaperCell(figure.printed, entry.scores[target.score], text, "")


def _repeats(entry: Entry, figure: Figure, target: Target) -> bool:
    """Return whether a row of results reproduces this number of a paper.

    The recipe must have written the number into this row. The encoding and its options must be those of the paper's
    row.
    """
    if entry.recipe != target.recipe or target.score not in entry.scores:
        return False
    if target.task and not f"{entry.task},".casefold().startswith(f"{target.task},".casefold()):
        return False
    label = str(entry.facts.get("encoding") or entry.label)
    return _reports(entry.facts.get(target.paper), figure) and _same_encoding(label, figure)


def _reports(reported: Any, figure: Figure) -> bool:
    """Return whether a row has the number: as a number, or as text with the numbers of one or several models."""
    if not isinstance(reported, str):
        return is_number(reported) and reported == figure.value
    named = f"{figure.printed} ({figure.conditions.get('model', '')})"
    return any(part in (figure.printed, named) for part in reported.split("; "))


def _same_encoding(label: str, figure: Figure) -> bool:
    """Return whether a label and a paper's row have the same encodings with the same values of all options.

    The label of a fine-tuned model names its segment encoding, too.
    """
    try:
        ours = parse(label)
        theirs = parse(figure.encoding + SEGMENTS[figure.conditions.get("segments", "none")])
    except ValueError:  # a model without a position encoding of this package, or with different ones in its two stacks
        return False
    unset = {} if (figure.paper, figure.table) in PLACES else PRETRAINED
    printed, own = (option_values(spec.options, _options, unset) for spec in (theirs, ours))
    return ours.names == theirs.names and are_those_of(figure.paper, printed, own)


def _options(name: str) -> dict[str, object]:
    """Return the options of an encoding and their defaults."""
    return {option["name"]: option["default"] for option in describe(get(kind_of(name)).Options)}
