"""Write comparison.json, lengths.png and tasks.png: the exact match of every model on every task."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from recipes.lib import divergence, records
from recipes.lib import seeds as seeds_of
from recipes.lib.package import write_whole
from recipes.lib.recipe import Row
from recipes.lib.seeds import Seeds
from recipes.lib.significance import average, compare_with_first, summary
from recipes.lib.stages import read_json

from . import drawing
from .settings import Model, models
from .tasks.registry import TASKS, task

#: A training run has solved a task if at least this percentage of longer examples is right (Delétang et al. 2023).
SOLVED = 90.0
#: Encodings with which all others are compared, if the run has them.
BASELINES = ("none", "rope")


def row(name: str, model: Model, seeds: Seeds, output: Path) -> Row:
    """Return the row of a task and a model, with the mean exact match over seeds."""
    slugs = {f"{name}.{slug}": seed for slug, seed in seeds.slugs(model.slug).items()}
    finished, diverged = divergence.runs(output, slugs)
    runs = [read_json(output / "scores" / f"{slug}.json") for slug in finished]
    return {
        "task": name,
        "unit": task(name).unit,
        "encoding": model.label,
        "within": average([run["within"] for run in runs], 2),
        **summary("beyond", [run["beyond"] for run in runs]),
        "solved": sum(run["beyond"] >= SOLVED for run in runs),
        "diverged": diverged,
        "updates": average([run["updates"] for run in runs]),
        "parameters": runs[0]["parameters"] if runs else None,
        **records.cost(output, *(f"train:{slug}" for slug in slugs)),
        "lengths": lengths(runs),
    }


def lengths(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each test set and length, return the exact match in percent (mean and each seed) and the number of rows."""
    return {
        split: {
            length: {
                "exact": round(mean(run["lengths"][split][length]["exact"] for run in runs), 2),
                "exact of seeds": [round(run["lengths"][split][length]["exact"], 2) for run in runs],
                "rows": facts["rows"],
            }
            for length, facts in (runs[0]["lengths"][split].items() if runs else ())
        }
        for split in ("within", "beyond")
    }


def compare(rows: Sequence[Row]) -> None:
    """Add the columns `p none` and `p rope`: p-values of the comparison with these encodings on the same task."""
    for baseline in BASELINES:
        has = {row["task"] for row in rows if row["encoding"] == baseline}
        family = sorted((row for row in rows if row["task"] in has), key=lambda row: row["encoding"] != baseline)
        compare_with_first(family, "beyond", "task")
        for row in rows:
            row[f"p {baseline}"] = row.pop("p", None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    add("--tasks", nargs="+", required=True, choices=list(TASKS), metavar="NAME", help="Tasks of the run.")
    add("--pos-enc", action="append", required=True, metavar="NAME", help="Encoding (repeatable).")
    add(
        "--once",
        action="append",
        default=[],
        metavar="NAME",
        help="Encoding trained with the first seed only (repeatable).",
    )
    seeds_of.add_options(parser)
    arguments = parser.parse_args()
    seeds = Seeds.from_arguments(arguments)
    first = Seeds(seeds.seeds[:1], seeds.own)
    repeated, once = models(arguments.pos_enc), models(arguments.once, once=True)
    rows = [
        row(name, model, own, arguments.output)
        for name in arguments.tasks
        for chosen, own in ((repeated, seeds), (once, first))
        for model in chosen
    ]
    compare(rows)
    shown = {model.label for model in repeated}
    drawing.draw_lengths([row for row in rows if row["encoding"] in shown], arguments.output)
    drawing.draw_tasks(rows, arguments.output)
    write_whole(arguments.output / "comparison.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
