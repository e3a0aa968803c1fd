"""The files that stages on questions leave, besides those that SQuAD's own scripts write and read. Needs no torch."""

from __future__ import annotations

from pathlib import Path

from recipes.lib.stages import read_json

RECORD = "spans.json"  # in a prepared folder
SCORED = "scored.json"  # after a split's name: the questions that are scored, in SQuAD's format
TEXTS = "texts.json"  # of version 2.0: predictions before any threshold
THRESHOLD = "null_threshold.json"  # of version 2.0: the threshold that was applied
OUT_OF_REACH = "out_of_reach.json"  # questions whose answers no prediction can be, by the reason
GOLD = "right answers"  # as predictions


def unreachable(predictions: Path) -> int:
    """Return how many questions have answers that no prediction can be."""
    return sum(map(len, read_json(predictions / OUT_OF_REACH).values()))
