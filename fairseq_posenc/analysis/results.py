"""Read the scores in the results of recipes (`results.json`), with their 95 % intervals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite, sqrt
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple, TypeGuard

#: Columns of the recipes' main scores, in the order in which they are looked for.
SCORES = ("BLEU", "perplexity", "F1", "ROUGE-L", "score", "accuracy", "beyond")
#: Scores whose interval over the sentences of the test set is in the column `±`.
TESTED = ("BLEU",)
CONFIDENCE = 0.95


class ResultsError(ValueError):
    """Raised if results cannot be read; the message names the file and says what to do."""


class Score(NamedTuple):
    """Hold a score of a model from the results of a recipe.

    Args:
        column: Name of the score.
        value: Value of the score; with several seeds, the mean or, if the recipe chose it, the median of their values.
        within: Half the width of the score's 95 % interval; None if it is not known.
        seeds: Number of training runs.
        median: Whether the value is the median over several seeds.
    """

    column: str
    value: float
    within: float | None
    seeds: int
    median: bool = False


def read(folder: Path) -> dict[str, Any]:
    """Return the content of a run's results.json; `folder` may also be the path of that file.

    Raises:
        ResultsError: The folder has no such file, or the file is not the result of a recipe.
    """
    path = folder / "results.json" if folder.is_dir() else folder
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        rows = facts["results"]
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) and isinstance(facts["recipe"], str):
            return dict(facts)
    except FileNotFoundError:
        raise ResultsError(
            f"{path}: this file does not exist. Name the --output folder of a finished recipe."
        ) from None
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise ResultsError(f"{path} is not the result of a recipe. Run the recipe again, or name another folder.")


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value in a result is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def score(row: Mapping[str, Any], column: str) -> Score:
    """Return the score that a row of results has in a column.

    For a single run, the recipe computed the 95 % interval over the sentences of the test set. For several runs, the
    interval is that of their mean score. A median has no interval, because the interval of the mean need not contain
    the median.
    """
    value, each, seeds, within = float(row[column]), row.get(f"{column} of seeds"), row.get("seeds"), row.get("±")
    if isinstance(each, list) and len(each) > 1 and all(map(is_number, each)):
        # A row with a median also has a column for the mean.
        median = is_number(row.get("mean" if column == "score" else f"mean {column}"))
        return Score(column, value, None if median else half_width(each), len(each), median)
    trainings = max(int(seeds), 1) if is_number(seeds) else 1
    return Score(column, value, float(within) if column in TESTED and is_number(within) else None, trainings)


def half_width(values: Sequence[float]) -> float:
    """Return half the width of the 95 % confidence interval of the mean of independent values (Student's t)."""
    from scipy import stats  # imported here, because recipes read results without it

    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
    return float(quantile * stdev(values) / sqrt(len(values)))
