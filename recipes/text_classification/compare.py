"""Write comparison.json and lengths.png with the scores of all training runs."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from recipes.lib import divergence, records
from recipes.lib.curves import draw_groups
from recipes.lib.encodings import Encoding, add_option, parse, published
from recipes.lib.finetuning.sentences import tasks
from recipes.lib.package import Figure, figures, write_whole
from recipes.lib.recipe import Row
from recipes.lib.significance import average, compare_with_first, summary
from recipes.lib.stages import read_json

Score = dict[str, Any]

#: The split of this recipe for each split of GLUE, whose test sets have no labels.
OF_GLUE = {"train": "train", "valid": "test", "valid-mismatched": "test-mismatched"}
#: Published number of rows of each split; SNLI's rows without an agreed label do not count. The validation rows count
#: as training rows, because most tasks have no validation set of their own.
ROWS = {
    "IMDB": {"train": 25_000, "test": 25_000},
    "SNLI": {"train": 549_367 + 9_842, "test": 9_824},
    **{
        name: {OF_GLUE[split]: number for split, number in tasks.TASKS[name].rows.items()}
        for name in ("SST-2", "QNLI", "QQP", "MNLI")
    },
}


def row(encoding: Encoding, seeds: list[int], task: str | None, output: Path, baselines: dict[str, float]) -> Row:
    """Return the row of an encoding, with the mean and standard deviation over seeds and with the paper's score."""
    slugs = {f"{encoding.slug}.s{seed}": seed for seed in seeds}
    finished, diverged = divergence.runs(output, slugs)
    runs: list[Score] = [read_json(output / "scores" / f"{slug}.json") for slug in finished]
    return {
        "encoding": encoding.label,
        **summary("score", [run["score"] for run in runs]),
        "paper": published(paper(task), encoding),
        **baselines,
        "diverged": diverged,
        "updates": average([run["updates"] for run in runs]),
        "parameters": runs[0]["parameters"] if runs else None,
        **records.cost(output, *(f"train:{slug}" for slug in slugs)),
        "lengths": lengths(runs),
    }


def paper(task: str | None) -> list[Figure]:
    """Return the scores in the paper's Table 1 (the best clip distance k) and Table 5 (several values of k)."""
    if task is None:
        return []
    return [*figures("LFHC", table="Table 1", column=task), *figures("LFHC", table="Table 5", column=task)]


def papers_rows(task: str, record: Mapping[str, Any]) -> bool:
    """Return whether a prepared folder has all rows of a task of the paper, apart from unusable rows.

    Args:
        task: Name of the task in the paper's tables.
        record: Contents of glue.json, which describes the prepared rows.
    """
    rows = Counter[str]()
    for split, facts in record["splits"].items():
        rows["train" if split == "valid" else split] += facts["items"]
    left_out = sum(done.get("left out", 0) for done in record["problems"].values())
    expected = ROWS.get(task, {})
    fewer = [number - rows[split] for split, number in expected.items()]
    return rows.keys() == expected.keys() and min(fewer) >= 0 and sum(fewer) == left_out


def lengths(runs: list[Score]) -> dict[str, dict[str, float]]:
    """Return, for each group of text lengths, the mean accuracy over seeds and the number of rows."""
    return {
        group: {
            "accuracy": round(mean(run["lengths"][group]["accuracy"] for run in runs), 2),
            "rows": runs[0]["lengths"][group]["rows"],
        }
        for group in (runs[0]["lengths"] if runs else {})
    }


def draw(rows: list[Row], path: Path) -> None:
    """Draw the accuracy by text length, with a line for each encoding."""
    by_encoding = {row["encoding"]: row["lengths"] for row in rows if row["lengths"]}  # without models that diverged
    groups = [
        f"{group}\n({facts['rows']})" for lengths in [*by_encoding.values()][:1] for group, facts in lengths.items()
    ]
    accuracy = {name: [facts["accuracy"] for facts in lengths.values()] for name, lengths in by_encoding.items()}
    labels = ("number of words in the text (number of rows)", "accuracy in percent")
    draw_groups(groups, accuracy, labels, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    text = "Name of the task in the paper's tables. Leave the option out if the paper does not have the task."
    parser.add_argument("--task", metavar="NAME", help=text)
    parser.add_argument("--seeds", required=True, metavar="N,...", help="Random seeds of the training runs.")
    add_option(parser, "compare with the first one")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    baselines = read_json(arguments.output / "baselines.json")
    record = read_json(arguments.output / "data-bin" / "glue.json")
    task = arguments.task if arguments.task and papers_rows(arguments.task, record) else None
    rows = [row(parse(label), seeds, task, arguments.output, baselines) for label in arguments.pos_enc]
    compare_with_first(rows, "score")
    draw(rows, arguments.output / "lengths.png")
    write_whole(arguments.output / "comparison.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
