"""Write comparison.json and lengths.png with the scores of all training runs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from recipes.lib import records
from recipes.lib.curves import draw_groups
from recipes.lib.encodings import Encoding, parse, published
from recipes.lib.package import Figure, figures, write_whole
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json

Score = dict[str, Any]


def row(encoding: Encoding, seeds: list[int], task: str | None, output: Path, baselines: dict[str, float]) -> Row:
    """Return the row of an encoding: the mean and the standard deviation over seeds, and the paper's number."""
    slugs = [f"{encoding.slug}.s{seed}" for seed in seeds]
    runs: list[Score] = [read_json(output / "scores" / f"{slug}.json") for slug in slugs]
    scores = [run["score"] for run in runs]
    return {
        "encoding": encoding.label,
        "score": round(mean(scores), 2),
        "deviation": round(stdev(scores), 2) if len(scores) > 1 else None,
        "seeds": len(scores),
        "scores": [round(score, 2) for score in scores],
        "paper": published(paper(task), encoding),
        **baselines,
        "updates": mean(run["updates"] for run in runs),
        "parameters": runs[0]["parameters"],
        **records.cost(output, *(f"train:{slug}" for slug in slugs)),
        "lengths": lengths(runs),
    }


def paper(task: str | None) -> list[Figure]:
    """Return the paper's numbers for a task: with the best clip distance k and with several values of k."""
    if task is None:
        return []
    return [*figures("LFHC", table="Table 1", column=task), *figures("LFHC", table="Table 5", column=task)]


def lengths(runs: list[Score]) -> dict[str, dict[str, float]]:
    """Return for each group of text lengths the mean accuracy over seeds and the number of rows."""
    return {
        group: {
            "accuracy": round(mean(run["lengths"][group]["accuracy"] for run in runs), 2),
            "rows": runs[0]["lengths"][group]["rows"],
        }
        for group in runs[0]["lengths"]
    }


def draw(rows: list[Row], path: Path) -> None:
    """Draw the accuracy by text length, with a line for each encoding."""
    groups = [f"{group}\n({facts['rows']})" for group, facts in rows[0]["lengths"].items()]
    accuracy = {row["encoding"]: [facts["accuracy"] for facts in row["lengths"].values()] for row in rows}
    labels = ("number of words in the text (number of rows)", "accuracy in percent")
    draw_groups(groups, accuracy, labels, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    text = "Name of the task in the paper's tables (default: the data are not the paper's)."
    parser.add_argument("--task", metavar="NAME", help=text)
    parser.add_argument("--seeds", required=True, metavar="N,...", help="Random seeds of the training runs.")
    parser.add_argument("--pos-enc", action="append", required=True, metavar="NAME", help="Encoding (repeatable).")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    baselines = read_json(arguments.output / "baselines.json")
    rows = [row(parse(label), seeds, arguments.task, arguments.output, baselines) for label in arguments.pos_enc]
    draw(rows, arguments.output / "lengths.png")
    write_whole(arguments.output / "comparison.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
