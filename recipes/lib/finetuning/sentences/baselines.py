"""Score constant answers on a task: the most frequent class, the class with the best F1, or the mean."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from fairseq_posenc.metrics import classification
from recipes.lib.package import write_whole
from recipes.lib.stages import read_json

from .data import labels
from .plan import RECORD


def baselines(folder: Path, names: list[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the constant answer, its score and a margin for each split and metric.

    The constant is chosen on the training labels. A model beats the constant answer if the model's score is higher by
    more than the margin. Score and margin are in percent.
    """
    record = read_json(folder / RECORD)
    train, by_split = labels(folder, "train"), dict[str, dict[str, dict[str, Any]]]()
    for split, facts in record["splits"].items():
        if split == "train" or not facts["labelled"]:
            continue
        by_split[split] = {}
        gold = labels(folder, split)
        for name in names:
            constant, score = classification.constants(name, train, gold)
            margin = classification.margin(name, len(gold), score)
            label = record["labels"][constant] if record["labels"] else round(constant, 3)
            in_percent = {"score": round(100 * score, 2), "margin": round(100 * margin, 2)}
            by_split[split][name] = {"constant": label, **in_percent}
    return by_split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    option("--data", type=Path, required=True, metavar="DIR", help="Output folder of prepare_glue.py.")
    option("--metrics", required=True, metavar="A,B", help="Names of the metrics, such as accuracy,f1.")
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the scores.")
    arguments = parser.parse_args()
    scores = baselines(arguments.data, arguments.metrics.split(","))
    write_whole(arguments.output, json.dumps(scores, indent=1))


if __name__ == "__main__":
    main()
