"""Score constant answers on a task: the most frequent class, the class with the best F1, or the mean."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from fairseq_posenc.metrics import classification
from recipes.lib.finetuning.sentences.plan import RECORD
from recipes.lib.package import write_whole
from recipes.lib.stages import read_json

from .data import labels


def baselines(folder: Path, names: list[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the constant answer, its score and the margin, by split and by metric.

    The constant is chosen on the training labels. A model beats it if its score is higher by more than the margin. Both
    are in percent.
    """
    record = read_json(folder / RECORD)
    train, by_split = labels(folder, "train"), dict[str, dict[str, dict[str, Any]]]()
    for split, facts in record["splits"].items():
        if split == "train" or not facts["labelled"]:
            continue
        by_split[split] = {}
        wanted = labels(folder, split)
        for name in names:
            constant, score = classification.constants(name, train, wanted)
            margin = classification.margin(name, len(wanted), score)
            label = record["labels"][constant] if record["labels"] else round(constant, 3)
            in_percent = {"score": round(100 * score, 2), "margin": round(100 * margin, 2)}
            by_split[split][name] = {"constant": label, **in_percent}
    return by_split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="what prepare_glue.py made")
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    write_whole(asked.output, json.dumps(baselines(asked.data, asked.metrics.split(",")), indent=1))


if __name__ == "__main__":
    main()
