"""Write the rows of XNLI and of the question datasets into comparison.json, and add averages as in the DIET paper.

The paper averages seven numbers: the accuracy of XNLI, and F1 and EM of three question datasets.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from recipes.lib.encodings import published
from recipes.lib.finetuning.comparison import comparable, encoding_of, together, write_rows
from recipes.lib.finetuning.models import Model
from recipes.lib.finetuning.sentences.xnli import MEAN
from recipes.lib.finetuning.trials import Variant
from recipes.lib.package import PRETRAINED, figures
from recipes.lib.recipe import Row
from recipes.lib.significance import compare_with_first, of_medians
from recipes.lib.stages import read_json

from .languages import rows_of_sentences
from .sets import TASKS, XNLI

AVERAGE = "average"  # the task of the rows with means over tasks


def average(rows: Sequence[Row], tasks: Sequence[str], label: str, segments: str) -> Row | None:
    """Return a row with the model's mean over the tasks, or None if the model has no score on one of the tasks.

    The average of a seed is the mean over the tasks of the training runs with this seed. A seed has no average if one
    of its training runs diverged.

    Args:
        rows: Rows of all tasks; for each task, model and language, the best hyperparameters come first.
        tasks: Names of the tasks.
        label: Name of the model in the rows.
        segments: Segment encoding of the model: none, input or head.
    """
    own = {row["task"]: row for row in reversed(rows) if (row["model"], row["language"]) == (label, MEAN)}
    numbers: dict[str, float] = {}
    for task in tasks:
        for column in ("score",) if task == XNLI else ("F1", "EM"):
            if (number := own.get(task, {}).get(column)) is None:
                return None
            numbers[f"{task} {'accuracy' if task == XNLI else column}"] = number
    encoding = encoding_of(own[XNLI]["pretrained"]["encoding"])
    paper = figures("DIET", column=AVERAGE, model="BERT-base, 100 languages", segments=segments)
    reported = published(paper, encoding, PRETRAINED)
    by_seed = [numbers_of_seeds(task, own[task]) for task in tasks]
    seeds = [seed for seed in by_seed[0] if all(seed in each for each in by_seed)]
    averages = [fmean(number for each in by_seed for number in each[seed]) for seed in seeds]
    return {
        **dict.fromkeys(rows[0]),
        "task": AVERAGE,
        "model": label,
        "language": MEAN,
        **of_medians("score", fmean(numbers.values()), averages),
        "of": f"{len(numbers)} numbers",
        "also": ", ".join(numbers),
        **(beside_the_paper(reported, own, tasks) if reported is not None else {}),
    }


def numbers_of_seeds(task: str, row: Row) -> dict[str, list[float]]:
    """Return a task's scores for the average, keyed by seed; seeds whose training run diverged are missing."""
    by_seed = row["scores of seeds"].items()
    if task == XNLI:
        return {seed: [scores[MEAN]["accuracy"]] for seed, scores in by_seed}
    return {seed: [scores["F1"], scores["EM"]] for seed, scores in by_seed}


def beside_the_paper(reported: float, rows: Mapping[str, Row], tasks: Sequence[str]) -> Row:
    """Return the column `paper` (None if a task is missing or has other data) and the column `comparable`.

    Args:
        reported: The average in the paper.
        rows: Rows of the means over languages, keyed by task.
        tasks: Names of the tasks.
    """
    missing = [task for task in TASKS if task not in tasks]
    # A task without the paper's mean has other data than the paper's.
    other = [task for task in tasks if rows[task]["paper" if task == XNLI else "paper's F1"] is None]
    differs = [f"no score on {', '.join(missing)}"] if missing else []
    differs += [f"other data than the paper's ({', '.join(other)})"] if other else []
    text = comparable([*differs, *together({task: rows[task]["differs"] for task in tasks})])
    return {"paper": None if differs else reported, "comparable": text}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    option("--task", action="append", required=True, choices=TASKS, help="Task to include; the option may be repeated.")
    metavar = ("MODEL", "SEGMENTS")
    text = "Label of a model, and its segment encoding; the option may be repeated."
    option("--variant", action="append", nargs=2, required=True, metavar=metavar, help=text)
    arguments = parser.parse_args()
    output: Path = arguments.output
    rows = rows_of_sentences(read_json(output / "xnli.json"), output) + read_json(output / "questions.json")
    names = dict.fromkeys((Variant("", Model(label, Path()), kind).label, kind) for label, kind in arguments.variant)
    averages = [row for label, kind in names if (row := average(rows, arguments.task, label, kind))]
    compare_with_first(averages, "score")
    write_rows([*rows, *averages], output)


if __name__ == "__main__":
    main()
