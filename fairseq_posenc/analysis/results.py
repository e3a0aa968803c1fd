"""The scores in the results of recipes (`result.json`), with their intervals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple

from scipy import stats

#: Columns of scores, in the order in which they are looked for.
SCORES = ("BLEU", "bleu", "perplexity", "F1", "ROUGE-L", "score", "accuracy")
LOWER_IS_BETTER = ("perplexity",)
#: Columns that tell the rows of one recipe apart, besides the encoding.
GROUPS = ("task", "direction", "language", "memory")
CONFIDENCE = 0.95


class ResultsError(ValueError):
    """Results cannot be read; the message names the file and says what to do."""


class Score(NamedTuple):
    """A score of an encoding.

    Args:
        group: Recipe and task, whose scores can be compared.
        encoding: Encoding with its options, or the name of the model.
        column: Name of the score.
        value: The score; with several seeds their mean.
        within: Half the width of the 95 % interval; None if it is not known.
        seeds: Number of trainings.
        settings: Settings of the run.
    """

    group: str
    encoding: str
    column: str
    value: float
    within: float | None
    seeds: int
    settings: Mapping[str, Any]


def read(folder: Path) -> dict[str, Any]:
    """Return the content of a run's result.json; `folder` may also be that file.

    Raises:
        ResultsError: There is no such file, or it is not the result of a recipe.
    """
    path = folder / "result.json" if folder.is_dir() else folder
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(facts["results"], list) and isinstance(facts["recipe"], str):
            return dict(facts)
    except FileNotFoundError:
        raise ResultsError(
            f"{path}: this file does not exist. Name the --output folder of a finished recipe."
        ) from None
    except (ValueError, LookupError, TypeError):
        pass
    raise ResultsError(f"{path} is not the result of a recipe. Run the recipe again, or name another folder.")


def scores(folder: Path, column: str | None = None) -> list[Score]:
    """Return the scores of a run; rows without a score are left out.

    Args:
        column: Column of the score; None for the first of SCORES that the rows have.

    Raises:
        ResultsError: The results cannot be read, or their rows have no such column.
    """
    facts = read(folder)
    chosen = next((name for name in (column,) if column) if column else (n for n in SCORES if _has(facts, n)), None)
    if chosen is None or not _has(facts, chosen):
        known = ", ".join(dict.fromkeys(name for row in facts["results"] for name in row))
        raise ResultsError(f"{folder}: no row has a score {column or ''}. Choose one with --score: {known}.")
    rows = [row for row in facts["results"] if isinstance(row.get(chosen), int | float)]
    return [_score(facts, row, chosen) for row in rows]


def _has(facts: Mapping[str, Any], column: str) -> bool:
    return any(isinstance(row.get(column), int | float) for row in facts["results"])


def _score(facts: Mapping[str, Any], row: Mapping[str, Any], column: str) -> Score:
    parts = [str(row[name]) for name in GROUPS if row.get(name) is not None]
    group = " ".join([facts["recipe"].removeprefix("recipes/"), *parts])
    name = str(row.get("encoding") or row.get("model") or "unknown")
    seeds, within = _interval(row, column)
    return Score(group, name, column, float(row[column]), within, seeds, facts.get("settings", {}))


def _interval(row: Mapping[str, Any], column: str) -> tuple[int, float | None]:
    """Return the number of trainings and half the width of the interval of a score."""
    each = row.get("scores")
    if column == "score" and isinstance(each, list) and len(each) > 1:
        return len(each), half_width(each)
    test_set = row.get("±")  # the bootstrap interval over the sentences of a test set
    return int(row.get("seeds") or 1), float(test_set) if isinstance(test_set, int | float) else None


def half_width(values: Sequence[float]) -> float:
    """Return half the width of the 95 % interval of the mean of independent values (Student's t)."""
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
    return float(quantile * stdev(values) / sqrt(len(values)))
