"""Turn the rows of XNLI, which the stage compare writes, into one row for each language and mean."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from recipes.lib.finetuning.sentences.xnli import ENGLISH, MEAN, OTHERS, XNLI, language, scored
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json

from .sets import CHANCE

ONLY_OF_MEANS = (
    *("paper", "comparable", "also", "trials", "scores"),
    *("mean", "sd", "seeds", "p", "score of seeds", "scores of seeds", "other data", "differs"),
)


def rows_of_sentences(rows: list[Row], output: Path) -> list[Row]:
    """Return the rows of all models; each model has a row for each mean and each language."""
    baselines: dict[str, Any] = read_json(output / "baselines" / f"{XNLI}.json")
    return [row for model in rows for row in _rows(model, baselines)]


def _rows(row: Row, baselines: dict[str, Any]) -> list[Row]:
    """Return the rows of one model. Only the first row has the paper's score, which is a mean over languages."""
    scores: Any = row["scores"]
    if not scores:  # all training runs diverged, or the row is a mean over tasks
        return [{"task": row["task"], "model": row["model"], "language": MEAN, **row}]
    chosen = scored(scores)
    constant = {split: baselines[split]["accuracy"] for split in chosen}
    groups = {MEAN: chosen, OTHERS: [split for split in chosen if language(split) != ENGLISH]}
    named = [(name, name, groups[name]) for name in groups if name in scores] if len(chosen) > 1 else []
    named += [(language(split), split, [split]) for split in chosen]
    table = [
        _row(row, name, float(scores[key]["accuracy"]), [constant[split] for split in splits])
        for name, key, splits in named
    ]
    blank = dict.fromkeys(ONLY_OF_MEANS)
    return [table[0], *({**other, **blank} for other in table[1:])]


def _row(row: Row, name: str, score: float, constants: list[dict[str, float]]) -> Row:
    """Return a row for one language or mean, with its score, its baseline and the score of random guesses."""
    baseline = round(fmean(answer["score"] for answer in constants), 2)  # rounded like the score
    margin = fmean(answer["margin"] for answer in constants)  # a mean has no smaller margin: translations share labels
    own = {"score": score, "baseline": baseline, "chance": CHANCE, "beats baseline": score > baseline + margin}
    return {"task": row["task"], "model": row["model"], "language": name, **row, **own}
