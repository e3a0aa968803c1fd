"""Read what recipe.sh and the steps of a recipe have written about a run: settings, models, scores and steps."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

Scores = dict[str, Any]


class Model(NamedTuple):
    """Hold a model of a run.

    Args:
        name: Name of the model in file names.
        item: What the model was trained for besides its encoding, such as a task; empty if the recipe has no items.
        failed: Why there is no score; empty if the model did not fail.
        scores: Content of scores/NAME.json: numbers and texts, or such an object for each item that was scored.
    """

    name: str
    encoding: str
    seed: int
    item: str
    failed: str
    scores: Scores


class Step(NamedTuple):
    """Hold a finished step: its name, its duration, and the commit and the command with which it ran."""

    name: str
    seconds: int
    commit: str
    command: str
    ended: float


def models(run: Path, table: Path | None = None, scores: Path | None = None) -> list[Model]:
    """Return the models of a run in their order.

    Args:
        table: File with a line for each model: name, encoding, seed and item (None: models.tsv).
        scores: Folder with NAME.json, or NAME.failed for a failed model (None: scores).
    """
    lines = (table or run / "models.tsv").read_text(encoding="utf-8").splitlines()
    return [_model(scores or run / "scores", *line.split("\t")) for line in dict.fromkeys(lines)]


def _model(folder: Path, name: str, encoding: str, seed: str, item: str = "") -> Model:
    failed, scored = folder / f"{name}.failed", folder / f"{name}.json"
    if failed.exists() or not scored.exists():
        reason = failed.read_text(encoding="utf-8").strip() if failed.exists() else "not scored"
        return Model(name, encoding, int(seed), item, reason, {})
    try:
        content = json.loads(scored.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SystemExit(
            f"error: {scored}: this file is not JSON ({error}). Remove it and run the recipe again."
        ) from None
    return Model(name, encoding, int(seed), item, "", content)


def finished(run: Path) -> list[Model]:
    """Return the models whose steps did not fail. They need not be scored yet."""
    return [model for model in models(run) if model.failed in ("", "not scored")]


def training_log(run: Path, name: str) -> Path:
    """Return the log of a model's training."""
    return run / "logs" / f"{name}.train.log"


def settings(text: str) -> dict[str, str | list[str]]:
    """Return the settings in a text that recipe.sh has printed; arrays of flags are lists of words."""
    values: dict[str, str | list[str]] = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        values[name] = shlex.split(value[1:-1]) if value.startswith("(") else "".join(shlex.split(value))
    return values


def steps(run: Path) -> list[Step]:
    """Return the finished steps in the order in which they ended."""
    found = []
    for name in dict.fromkeys((run / "steps.txt").read_text(encoding="utf-8").splitlines()):
        step = read_mark(run / ".done" / name)
        found += [step] if step else []
    return sorted(found, key=lambda step: step.ended)


def read_mark(mark: Path) -> Step | None:
    """Return the step that a mark of recipe.sh describes; None if there is no such mark, or if it is damaged."""
    try:
        _, seconds, commit, command, *_ = mark.read_text(encoding="utf-8").splitlines()
        return Step(mark.name, int(seconds), commit, command, mark.stat().st_mtime)
    except (OSError, ValueError):
        return None
