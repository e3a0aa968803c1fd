"""Describe prepared questions and scores in lines for the screen and the report."""

from __future__ import annotations

from pathlib import Path

from recipes.lib import problems
from recipes.lib.stages import Stage, read_json

from .files import RECORD


def tell(stage: Stage) -> str:
    """Return a short result of a finished stage for the screen."""
    if stage.kind == "check":
        facts = read_json(stage.outputs[0])
        return f" {facts['encoding']}, {facts['layers']} layers of width {facts['dim']}, {facts['vocabulary']:,} pieces"
    if stage.kind == "prepare":
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "score":
        scores = read_json(stage.outputs[0])
        best = f", best F1 {scores['best_f1']:.2f}" if "best_f1" in scores else ""
        return f" EM {scores['em']:.2f}, F1 {scores['f1']:.2f}{best}"
    if stage.kind == "baselines":
        scores = read_json(stage.outputs[0])
        return " F1 " + ", ".join(f"{score['f1']:.2f} ({name})" for name, score in scores.items())
    return ""


def counted(folder: Path) -> str:
    """Return a summary of a prepared folder: its questions, windows and problems."""
    record = read_json(folder / RECORD)
    parts = (
        f"{name}: {split['questions']:,} of {split['given']:,} questions in {split['windows']:,} windows"
        for name, split in record["splits"].items()
    )
    return "; ".join(filter(None, [*parts, problems.counted(record["problems"])]))


def lengths(folder: Path) -> str:
    """Describe the lengths of questions with their contexts: the mean of each split, and the share above 512 pieces."""
    splits = read_json(folder / RECORD)["splits"]
    parts = (
        f"{name} {split['pieces without windows'] / split['questions']:.1f} pieces on average, "
        f"{split['sequences over 512 pieces'] / split['questions']:.1%} longer than 512"
        for name, split in splits.items()
    )
    return f"Lengths of questions with their contexts: {'; '.join(parts)}."
