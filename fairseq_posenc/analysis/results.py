"""Read the scores in the results of recipes (`results.json`), with their 95 % intervals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite, sqrt
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple, TypeGuard

#: Columns of the recipes' main scores, in the order in which they are looked for.
SCORES = ("BLEU", "bleu", "perplexity", "F1", "ROUGE-L", "score", "accuracy")
LOWER_IS_BETTER = ("perplexity",)
#: Columns that tell the rows of one recipe apart, besides the encoding.
GROUPS = ("task", "direction", "language", "memory", "evaluation", "copying")
#: Scores whose interval over the sentences of the test set is in the column `±`.
TESTED = ("BLEU", "bleu")
P_VALUE = "p"
CONFIDENCE = 0.95


class ResultsError(ValueError):
    """Raised if results cannot be read; the message names the file and says what to do."""


class Score(NamedTuple):
    """Hold a score of an encoding from the results of a recipe.

    Args:
        group: Recipe and task; scores of the same group can be compared.
        encoding: Encoding with its options, or the name of the model.
        column: Name of the score.
        value: Value of the score; with several seeds, the mean or, if the recipe chose it, the median of their values.
        within: Half the width of the score's 95 % interval; None if it is not known.
        seeds: Number of training runs.
        median: Whether the value is the median over several seeds.
    """

    group: str
    encoding: str
    column: str
    value: float
    within: float | None
    seeds: int
    median: bool = False


def read(folder: Path) -> dict[str, Any]:
    """Return the content of a run's results.json; `folder` may also be the path of that file.

    Runs of earlier versions have a result.json.

    Raises:
        ResultsError: The folder has no such file, or the file is not the result of a recipe.
    """
    old = folder / "result.json"
    path = folder if not folder.is_dir() else old if old.exists() else folder / "results.json"
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


def score(facts: Mapping[str, Any], row: Mapping[str, Any], column: str) -> Score:
    """Return the score that a row of results has in a column."""
    known = {name: row[name] for name in GROUPS if row.get(name) not in (None, "")}
    parts = [f"{name} {value}" if is_number(value) else str(value) for name, value in known.items()]
    group = " ".join([facts["recipe"].removeprefix("recipes/"), *parts])
    name = str(row.get("encoding") or row.get("model") or "unknown")
    within, seeds = interval(row, column)
    median = seeds > 1 and _is_median(row, column)
    return Score(group, name, column, float(row[column]), within, seeds, median)


def interval(row: Mapping[str, Any], column: str) -> tuple[float | None, int]:
    """Return half the width of the 95 % confidence interval of a score, and the number of training runs.

    For a single run, the recipe computed the interval over the sentences of the test set. For several runs, the
    interval is that of their mean score. A median has no interval, because the interval of the mean need not contain
    the median. For several runs, a p-value is the largest p-value of the runs, and has no interval.
    """
    each, seeds, within = row.get(f"{column} of seeds"), row.get("seeds"), row.get("±")
    if isinstance(each, list) and len(each) > 1 and all(map(is_number, each)):
        return None if column == P_VALUE or _is_median(row, column) else half_width(each), len(each)
    trainings = len(seeds) if isinstance(seeds, list) else int(seeds) if is_number(seeds) else 1
    return float(within) if column in TESTED and is_number(within) else None, max(trainings, 1)


def _is_median(row: Mapping[str, Any], column: str) -> bool:
    """Return whether a score is a median over seeds; the row then also has a column for the mean."""
    return is_number(row.get("mean" if column == "score" else f"mean {column}"))


def half_width(values: Sequence[float]) -> float:
    """Return half the width of the 95 % confidence interval of the mean of independent values (Student's t)."""
    from scipy import stats  # imported here, because recipes read results without it

    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
    return float(quantile * stdev(values) / sqrt(len(values)))
