"""What stages leave besides the files that SQuAD's own scripts write and read; without torch."""

from __future__ import annotations

from pathlib import Path

from recipes.lib.stages import read_json

SCORED = "scored.json"  # behind a split's name, of prepare_spans.py: the questions that are scored, in SQuAD's format
TEXTS = "texts.json"  # of predict.py, version 2.0: predictions before any threshold
THRESHOLD = "null_threshold.json"  # of predict.py, version 2.0: what was applied
OUT_OF_REACH = "out_of_reach.json"  # of predict.py: questions whose answers no prediction can be, by the reason


def unreachable(predictions: Path) -> int:
    """How many of these there are."""
    return sum(map(len, read_json(predictions / OUT_OF_REACH).values()))
