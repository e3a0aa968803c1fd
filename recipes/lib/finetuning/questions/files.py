"""Define names that the stages of question answering share: names of files and of a baseline.

This module does not import torch.
"""

from __future__ import annotations

from pathlib import Path

from recipes.lib.stages import read_json

CHECKED = "checked"  # folder of a run with a file of facts about each model
RECORD = "spans.json"  # the record in a prepared folder
SCORED = "scored.json"  # SPLIT.scored.json has the questions that are scored, in SQuAD's format
TEXTS = "texts.json"  # SQuAD 2.0: predictions before the threshold is applied
THRESHOLD = "null_threshold.json"  # SQuAD 2.0: the threshold that was applied
OUT_OF_REACH = "out_of_reach.json"  # questions that the model cannot answer correctly, by reason
GOLD = "gold answers"  # the baseline that uses the gold answers as predictions


def unreachable(predictions: Path) -> int:
    """Return the number of questions whose gold answers the model cannot predict."""
    return sum(map(len, read_json(predictions / OUT_OF_REACH).values()))
