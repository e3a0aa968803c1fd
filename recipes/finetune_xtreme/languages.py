"""XNLI's table by language, of what GLUE's recipe leaves: the mean, then each language beside its constant answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipes.lib.recipe import Row
from recipes.lib.stages import read_json

from .sets import CHANCE, ENGLISH, XNLI

ONLY_OF_MEANS = ("paper", "comparable", "also", "trials", "scores", "runs")


def rows_of_sentences(rows: list[Row], output: Path) -> list[Row]:
    """The rows of each model by language."""
    baselines: dict[str, Any] = read_json(output / "baselines" / f"{XNLI}.json")
    return [row for one in rows for row in _rows(one, baselines)]


def _rows(row: Row, baselines: dict[str, Any]) -> list[Row]:
    found: Any = row["scores"]
    chosen = splits(found)
    others = [split for split in chosen if language(split) != ENGLISH]
    scores = {split: float(found[split]["accuracy"]) for split in chosen}
    constant = {split: float(baselines[split]["accuracy"]["score"]) for split in chosen}
    score = float(str(row["score"]))
    baseline = round(sum(constant[one] for one in others) / len(others), 2) if others else constant[chosen[0]]
    mean = "mean but en" if others else ENGLISH
    first = _row(row, mean, score, baseline)
    single = [_row(row, language(one), scores[one], constant[one]) for one in chosen]
    blank = dict.fromkeys(ONLY_OF_MEANS)
    return [first, *({**one, **blank} for one in (single if others else []))]


def _row(row: Row, name: str, score: float, baseline: float) -> Row:
    """With the language behind the model, and what it is compared with."""
    own = {"score": score, "baseline": baseline, "chance": CHANCE, "beats baseline": score > baseline}
    return {"task": row["task"], "model": row["model"], "language": name, **row, **own}


def splits(scores: dict[str, Any]) -> list[str]:
    """A split of each language: of the test sets, or of the development sets where the test sets have no labels."""
    tests = [split for split in scores if split.startswith("test-")]
    return tests if any(language(one) != ENGLISH for one in tests) else [one for one in scores if "test" not in one]


def language(split: str) -> str:
    """English where it names none."""
    return split.partition("-")[2] or ENGLISH
