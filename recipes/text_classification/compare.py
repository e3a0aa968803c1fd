"""Put the scores of all trainings into comparison.json and lengths.png."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from matplotlib import pyplot

from recipes.lib import records
from recipes.lib.curves import save
from recipes.lib.encodings import Encoding, parse, published
from recipes.lib.package import Figure, figures, write_whole
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json

Score = dict[str, Any]


def row(encoding: Encoding, seeds: list[int], task: str, output: Path, baselines: dict[str, float]) -> Row:
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


def paper(task: str) -> list[Figure]:
    """Return the paper's numbers for a task: those of the best k, and those of the sweep of k."""
    return [*figures("LFHC", table="Table 1", column=task), *figures("LFHC", table="Table 5", column=task)]


def lengths(runs: list[Score]) -> dict[str, dict[str, float]]:
    """Return the accuracy by length, as the mean over seeds, and the number of rows."""
    return {
        group: {
            "accuracy": round(mean(run["lengths"][group]["accuracy"] for run in runs), 2),
            "rows": runs[0]["lengths"][group]["rows"],
        }
        for group in runs[0]["lengths"]
    }


def draw(rows: list[Row], path: Path) -> None:
    """Draw the accuracy by length, with a line for each encoding."""
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for number, one in enumerate(rows):
        groups = [f"{group}\n({facts['rows']})" for group, facts in one["lengths"].items()]
        accuracy = [facts["accuracy"] for facts in one["lengths"].values()]
        colour = pyplot.get_cmap("tab20").colors[number % 20]
        axes.plot(groups, accuracy, marker="o", linewidth=1.5, label=one["encoding"], color=colour)
    axes.set_xlabel("words (rows)")
    axes.set_ylabel("accuracy, percent")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="The recipe's folder.")
    parser.add_argument("--task", required=True, metavar="NAME", help="The task, as the paper's tables call it.")
    parser.add_argument("--seeds", required=True, metavar="A,B", help="Random seeds of the trainings.")
    parser.add_argument(
        "--pos-enc", action="append", required=True, metavar="NAME", help="Position encoding; repeat it."
    )
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    baselines = read_json(arguments.output / "baselines.json")
    rows = [row(parse(label), seeds, arguments.task, arguments.output, baselines) for label in arguments.pos_enc]
    draw(rows, arguments.output / "lengths.png")
    write_whole(arguments.output / "comparison.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
