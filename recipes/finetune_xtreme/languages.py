"""XNLI's table by language, of what GLUE's recipe leaves: the means, then each language beside its constant answer."""

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
    """Return the rows of each model by language."""
    baselines: dict[str, Any] = read_json(output / "baselines" / f"{XNLI}.json")
    return [row for one in rows for row in _rows(one, baselines)]


def _rows(row: Row, baselines: dict[str, Any]) -> list[Row]:
    """Return the means, then the languages. The first mean is XTREME's, so the paper's figure stands beside it."""
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
    """Return a row with the language after the model, and with what its score is compared."""
    baseline = round(fmean(one["score"] for one in constants), 2)  # as the score
    margin = fmean(one["margin"] for one in constants)  # translations have the same labels: a mean is not surer
    own = {"score": score, "baseline": baseline, "chance": CHANCE, "beats baseline": score > baseline + margin}
    return {"task": row["task"], "model": row["model"], "language": name, **row, **own}
