"""Rows of a file are checked, and what is wrong with them is reported."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from questions.problems import Problem

from .formats import Format
from .reading import NEEDED, Row

HOW = ("refuse", "skip")
TRANSLATION = "translation of a wrong row"


@dataclass
class Split:
    """rows: Those that are left. given: How many were meant for the split. whole: How many its file has."""

    name: str
    path: Path
    rows: list[Row]
    given: int
    whole: int


def checked(split: str, rows: Iterable[Row], form: Format, how: str) -> tuple[list[Row], list[Problem]]:
    """Return the rows that are left, and what is wrong.

    A row of a test split is not left out, as a submission answers all of them: with `skip` it stays, without a label.
    Those of other languages are scored and not submitted.

    Args:
        how: One of `HOW`; with refuse, the rows are those of skip.
    """
    kept, problems = list[Row](), list[Problem]()
    test = not split.startswith(NEEDED)
    answered = test and not form.translated
    for row in rows:
        wrong = _wrong(row, form, labelled=row.label is not None or not test)
        if wrong is None:
            kept.append(row)
        else:
            kept += [row._replace(label=None)] if answered else []
            done = "refused" if how == "refuse" else "kept" if answered else "left out"
            problems.append(Problem(split, row.where, row.id, *wrong, done))
    return kept, problems


def translations(splits: Sequence[Split], wrong: Sequence[Problem]) -> list[Problem]:
    """Leave out what translates a row that is left out of another language: its score would be of other rows.

    Translations have the same number in their files; files that are not of one length are none of each other.
    """
    told = list[Problem]()
    for kind in ("valid", "test"):
        parallel = {split.name: split for split in splits if split.name.partition("-")[0] == kind}
        if len({split.given for split in parallel.values()}) > 1:
            continue
        why = {one.id: f"it is left out of {one.split}: {one.kind}" for one in wrong if one.split in parallel}
        for name, split in parallel.items():
            gone = [row for row in split.rows if row.id in why]
            told += [Problem(name, row.where, row.id, TRANSLATION, why[row.id], "left out") for row in gone]
            split.rows = [row for row in split.rows if row.id not in why]
    return told


def strays(split: str, lines: Iterable[tuple[str, str]], how: str) -> list[Problem]:
    """Return the problems of lines whose language is unknown; they are in no split."""
    done = "refused" if how == "refuse" else "left out"
    return [Problem(split, where, where, "language", f"the language is {word!r}", done) for where, word in lines]


def _wrong(row: Row, form: Format, *, labelled: bool) -> tuple[str, str] | None:
    """Return the kind of what is wrong with a row, and what there is."""
    if row.fields != row.wanted:
        return "fields", f"{row.fields} fields, the header has {row.wanted}"
    if not all(row.sentences):
        return "empty sentence", f"{row.sentences!r}"
    if labelled and row.label not in form.labels if form.labels else labelled and not _within(row.label, form.bounds):
        known = ", ".join(form.labels) or f"{form.bounds[0]:g} to {form.bounds[1]:g}"
        return "label", f"the label is {row.label!r}: {known}"
    return None


def _within(word: str | None, bounds: tuple[float, float]) -> bool:
    try:
        number = float(word or "nan")
    except ValueError:
        return False
    return not math.isnan(number) and bounds[0] <= number <= bounds[1]
