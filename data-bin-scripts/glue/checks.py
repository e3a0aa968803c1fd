"""Check the rows of GLUE's files, and report what is wrong with them."""

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
    """The rows of a split.

    Args:
        rows: Rows that are kept.
        given: Number of rows that were assigned to the split.
        whole: Number of rows in the file.
    """

    name: str
    path: Path
    rows: list[Row]
    given: int
    whole: int


def checked(split: str, rows: Iterable[Row], form: Format, how: str) -> tuple[list[Row], list[Problem]]:
    """Return the rows that are kept, and the problems.

    A test submission needs an answer for every row, so wrong rows of a test split are never left out. With `skip`, they
    are kept without a label. Test splits of translated tasks are scored here and not submitted, so their wrong rows are
    left out.

    Args:
        how: One of `HOW`; refuse returns the same rows as skip.
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
    """Leave out the translations of rows left out in another language, so that all languages score the same rows.

    Translations have the same row number in their files. If the files of the languages differ in length, their rows are
    no translations of each other and are all kept.
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
    """Return a problem for each line whose language is unknown; such lines are in no split."""
    done = "refused" if how == "refuse" else "left out"
    return [Problem(split, where, where, "language", f"the language is {word!r}", done) for where, word in lines]


def _wrong(row: Row, form: Format, *, labelled: bool) -> tuple[str, str] | None:
    """Return the kind and the description of what is wrong with a row, or None."""
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
