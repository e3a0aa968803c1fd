"""Write the rows of XNLI and of the question datasets into comparison.json, and add averages as in the DIET paper.

The paper averages seven numbers: the accuracy of XNLI, and F1 and EM of three question datasets.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from recipes.lib.encodings import published
from recipes.lib.finetuning.comparison import encoding_of, write_rows
from recipes.lib.finetuning.models import Model
from recipes.lib.finetuning.sentences.xnli import MEAN
from recipes.lib.finetuning.trials import Variant
from recipes.lib.package import PRETRAINED, figures
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json

from .languages import rows_of_sentences
from .sets import TASKS, XNLI

AVERAGE = "average"  # the task of the rows with means over tasks


def average(rows: Sequence[Row], tasks: Sequence[str], label: str, segments: str) -> Row | None:
    """Return a row with the model's mean over the tasks, or None if the model has no score on one of the tasks.

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
    # A task without the paper's mean has other data than the paper's.
    compared = {task for task in tasks if own[task]["paper" if task == XNLI else "paper's F1"] is not None}
    return {
        **dict.fromkeys(rows[0]),
        "task": AVERAGE,
        "model": label,
        "language": MEAN,
        "score": round(fmean(numbers.values()), 2),
        "of": f"{len(numbers)} numbers",
        "also": ", ".join(numbers),
        "paper": published(paper, encoding, PRETRAINED) if compared == set(TASKS) else None,
    }


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
    averages = [average(rows, arguments.task, label, kind) for label, kind in names]
    write_rows([*rows, *(row for row in averages if row)], output)


if __name__ == "__main__":
    main()
