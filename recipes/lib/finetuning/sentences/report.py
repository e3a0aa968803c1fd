"""Describe prepared rows and scores in lines for the screen and the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes.lib import problems
from recipes.lib.stages import Stage, read_json

from .plan import RECORD


def tell(stage: Stage) -> str:
    """Return a short result of a finished stage for the screen."""
    if stage.kind == "check":
        facts = read_json(stage.outputs[0])
        return f" {facts['encoding']}, {facts['layers']} layers of width {facts['dim']}, {facts['updates']} updates"
    if stage.kind == "prepare":
        return f" {counted(stage.outputs[0])}"
    if stage.kind == "baseline":
        scores = read_json(stage.outputs[0])["valid"]
        return " " + ", ".join(f"{name} {best['score']} (always {best['constant']})" for name, best in scores.items())
    if stage.kind == "evaluate":
        scores = read_json(stage.outputs[0])["scores"]["valid"]
        return " " + ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
    return ""


def counted(folder: Path) -> str:
    """Return a summary of a prepared folder: its rows, cut items, unknown pieces and problems."""
    record = read_json(folder / RECORD)
    splits = record["splits"].items()
    parts = ["rows used: " + ", ".join(f"{split} {_rows(facts)}" for split, facts in splits)]
    if cut := ", ".join(f"{split} {facts['cut']:,}" for split, facts in splits if facts["cut"]):
        parts.append(f"rows cut to {record['longest']} pieces: {cut}")
    if unknown := ", ".join(f"{split} {_unknown(facts):.2%}" for split, facts in splits if facts["unknown"]):
        parts.append(f"pieces unknown to the model: {unknown}")
    return "; ".join(filter(None, [*parts, problems.counted(record["problems"])]))


def _rows(facts: dict[str, Any]) -> str:
    """Return how many rows of a split are used; --limit and --train-rows leave out rows of its file."""
    left_out = f" (the file has {facts['in file']:,})" if facts.get("in file", facts["given"]) > facts["given"] else ""
    return f"{facts['items']:,} of {facts['given']:,}{left_out}"


def _unknown(facts: dict[str, Any]) -> float:
    """Return the fraction of a split's pieces that are unknown to the model."""
    return float(facts["unknown"] / max(facts["pieces"], 1))


def strange(prepared: Sequence[Path]) -> list[str]:
    """Return a line for each split with many unknown pieces, because scores on such a split say little."""
    lines = []
    for folder in prepared:
        record = read_json(folder / RECORD)
        splits = [split for split, facts in record["splits"].items() if _unknown(facts) > record["strange"]]
        where = f"{folder.name}, {', '.join(splits)}: more than {record['strange']:.0%} of the pieces"
        lines += [f"{where} are unknown to the model, so scores on this text mean little."] if splits else []
    return lines


def behind(names: Sequence[str]) -> list[str]:
    """Return a list of at most one line: the names of the results that do not beat the constant answer."""
    return [f"These results do not beat the constant answer: {'; '.join(names)}."] if names else []
