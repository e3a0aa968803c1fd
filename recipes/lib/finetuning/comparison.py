"""Write comparison.json, and say whether a paper's score is comparable with the score of a fine-tuned model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from recipes.lib.encodings import Encoding, parse
from recipes.lib.package import write_whole
from recipes.lib.recipe import Row
from recipes.lib.values import Refused

COMPARISON = "comparison.json"  # the rows of the report's table


def encoding_of(label: str) -> Encoding | None:
    """Return the encoding that a label names, or None if the label does not name an encoding."""
    try:
        return parse(label)
    except Refused:
        return None


def comparable(differences: Sequence[str]) -> str:
    """Return the text of the column `comparable`: whether a paper's score is comparable with the score of the run.

    The pretraining corpora are not compared, because a checkpoint does not name its corpus.

    Args:
        differences: Differences that prevent a comparison, as short texts; empty if there are none.
    """
    return f"no: {'; '.join(differences)}" if differences else "yes, if pretrained like the paper's model"


def together(differences: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the differences of several tasks without duplicates.

    A difference that only some tasks have is followed by the names of these tasks.

    Args:
        differences: Differences as short texts, keyed by task.
    """
    tasks: dict[str, list[str]] = {}
    for task, texts in differences.items():
        for text in texts:
            tasks.setdefault(text, []).append(task)
    return [text if len(own) == len(differences) else f"{text} ({', '.join(own)})" for text, own in tasks.items()]


def write_rows(rows: Sequence[Row], output: Path, name: str = COMPARISON) -> None:
    write_whole(output / name, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
