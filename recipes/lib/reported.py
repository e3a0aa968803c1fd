"""Hold the scores of a paper that stand beside a run's score, and write them as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, TypeGuard


class Reported(TypedDict):
    """Describe a score that a paper reports for the encoding of a row.

    `model` describes the model if it is not the paper's own one. `segments` is the segment encoding of the paper's row
    if the run has several segment encodings. Otherwise, these texts are empty.
    """

    score: float
    model: str
    segments: str


def are_reported(value: object) -> TypeGuard[list[Reported]]:
    """Return whether a value of a row is a list of a paper's scores."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and "score" in item for item in value)


def as_text(value: Any) -> Any:
    """Return a list of a paper's scores as text for a table, and every other value as it is."""
    return text(value) if are_reported(value) else value


def text(figures: Sequence[Reported]) -> str:
    """Return scores as text, such as `81.25; 87.32/87.31 (roberta-base itself)`. A slash joins scores of one model."""
    scores: dict[str, list[str]] = {}
    for figure in figures:
        remarks = [figure["model"], figure["segments"] and f"segments: {figure['segments']}"]
        behind = "".join(f" ({remark})" for remark in remarks if remark)
        scores.setdefault(behind, []).append(f"{figure['score']:g}")
    return "; ".join("/".join(numbers) + behind for behind, numbers in scores.items())
