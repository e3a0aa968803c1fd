"""Turn the rows that recipes.finetune_glue.compare writes for XNLI into a table by language: means first."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from recipes.lib.finetuning.sentences.xnli import ENGLISH, MEAN, OTHERS, XNLI, language, scored
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json

from .sets import CHANCE

ONLY_OF_MEANS = ("paper", "comparable", "also", "trials", "scores", "runs")


def rows_of_sentences(rows: list[Row], output: Path) -> list[Row]:
    """Return the rows of each model, one for each mean and each language."""
    baselines: dict[str, Any] = read_json(output / "baselines" / f"{XNLI}.json")
    return [row for one in rows for row in _rows(one, baselines)]


def _rows(row: Row, baselines: dict[str, Any]) -> list[Row]:
    """Return the rows of one model. Only the first has the paper's score, because the paper reports the same mean."""
    found: Any = row["scores"]
    chosen = scored(found)
    constant = {split: baselines[split]["accuracy"] for split in chosen}
    groups = {MEAN: chosen, OTHERS: [split for split in chosen if language(split) != ENGLISH]}
    named = [(name, name, groups[name]) for name in groups if name in found] if len(chosen) > 1 else []
    named += [(language(split), split, [split]) for split in chosen]
    made = [
        _row(row, name, float(found[key]["accuracy"]), [constant[split] for split in some]) for name, key, some in named
    ]
    blank = dict.fromkeys(ONLY_OF_MEANS)
    return [made[0], *({**one, **blank} for one in made[1:])]


def _row(row: Row, name: str, score: float, constants: list[dict[str, float]]) -> Row:
    """Return a row for one language or mean, with its score, its baseline and chance."""
    baseline = round(fmean(one["score"] for one in constants), 2)  # rounded like the score
    margin = fmean(one["margin"] for one in constants)  # not smaller for a mean: translations share labels
    own = {"score": score, "baseline": baseline, "chance": CHANCE, "beats baseline": score > baseline + margin}
    return {"task": row["task"], "model": row["model"], "language": name, **row, **own}
