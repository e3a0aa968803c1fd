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
    """Hold the rows of a split that are written, and count the rows of the split and of the file that contains it.

    Args:
        rows: Rows that are written.
        assigned: Number of rows that belong to the split, including bad rows.
        in_file: Number of rows in the file.
    """

    name: str
    path: Path
    rows: list[Row]
    assigned: int
    in_file: int


def checked(split: str, rows: Iterable[Row], form: Format, how: str) -> tuple[list[Row], list[Problem]]:
    """Return the rows to write, and the problems.

    A test submission needs an answer for every row, so bad rows of a test split are kept, without a label. Test splits
    of translated tasks are scored by the recipes and not submitted, so their bad rows are left out.

    Args:
        how: How bad rows are handled (one of `HOW`); `refuse` returns the same rows as `skip`.
    """
    usable, problems = list[Row](), list[Problem]()
    test = not split.startswith(NEEDED)
    answered = test and not form.translated
    for row in rows:
        defect = _defect(row, form, labelled=row.label is not None or not test)
        if defect is None:
            usable.append(row)
        else:
            usable += [row._replace(label=None)] if answered else []
            done = "refused" if how == "refuse" else "kept" if answered else "left out"
            problems.append(Problem(split, row.where, row.id, *defect, done))
    return usable, problems


def translations(splits: Sequence[Split], row_problems: Sequence[Problem]) -> list[Problem]:
    """Leave out the translations of rows that are left out in one language, so that all languages score the same rows.

    Translations have the same row number in all files. If the files of the languages differ in length, their rows are
    not translations of each other, and all rows are kept.
    """
    problems = list[Problem]()
    for kind in ("valid", "test"):
        parallel = {split.name: split for split in splits if split.name.partition("-")[0] == kind}
        if len({split.assigned for split in parallel.values()}) > 1:
            continue
        bad_rows = [problem for problem in row_problems if problem.split in parallel]
        reasons = {problem.id: f"it is left out of {problem.split}: {problem.kind}" for problem in bad_rows}
        for name, split in parallel.items():
            bad = [row for row in split.rows if row.id in reasons]
            problems += [Problem(name, row.where, row.id, TRANSLATION, reasons[row.id], "left out") for row in bad]
            split.rows = [row for row in split.rows if row.id not in reasons]
    return problems


def strays(split: str, lines: Iterable[tuple[str, str]], how: str) -> list[Problem]:
    """Return a problem for each line whose language is unknown; such lines belong to no split."""
    done = "refused" if how == "refuse" else "left out"
    return [Problem(split, where, where, "language", f"unknown language {word!r}", done) for where, word in lines]


def _defect(row: Row, form: Format, *, labelled: bool) -> tuple[str, str] | None:
    """Return the kind and the description of what is wrong with a row, or None."""
    if row.fields != row.expected:
        return "fields", f"the row has {row.fields} fields, but the header has {row.expected}"
    if not all(row.sentences):
        return "empty sentence", f"a sentence of {row.sentences!r} is empty"
    if labelled and row.label not in form.labels if form.labels else labelled and not _within(row.label, form.bounds):
        known = f"one of {', '.join(form.labels)}" if form.labels else f"from {form.bounds[0]:g} to {form.bounds[1]:g}"
        return "label", f"the label is {row.label!r}, but must be {known}"
    return None


def _within(word: str | None, bounds: tuple[float, float]) -> bool:
    try:
        number = float(word or "nan")
    except ValueError:
        return False
    return not math.isnan(number) and bounds[0] <= number <= bounds[1]
