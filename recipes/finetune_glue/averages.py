"""Average the scores of a model over tasks, as the DIET paper does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import fmean

from recipes.lib.finetuning.comparison import encoding_of
from recipes.lib.finetuning.sentences.tasks import HEADLINE, TASKS, metrics
from recipes.lib.finetuning.trials import Variant
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json

from .published import MISMATCHED, paper

AVERAGE = "average"  # the task of the rows with means over tasks
#: The numbers in the averages of the DIET paper.
OF_THE_PAPER = {"MNLI", MISMATCHED, "QQP", "QNLI", "SST-2", "CoLA", "STS-B"}


def averages(rows: Sequence[Row], variants: Sequence[Variant], output: Path, protocol: str) -> list[Row]:
    """Return a row with the mean score over all tasks for each model and segment encoding.

    The list is empty if there is only one task. The matched and the mismatched set of MNLI count as two numbers. A
    segment encoding matters only for pairs of sentences, so the score on a task of single sentences enters the mean of
    every segment encoding. A model gets no row if it has no score on one of the tasks.

    Args:
        rows: Rows of the table; for each task and model, the best hyperparameters come first.
        variants: The models and tasks of these rows.
        output: Folder of the run, which contains the facts about each model.
        protocol: Name of the fine-tuning protocol; only the averages of `diet` are compared with the paper.
    """
    best = {(row["task"], row["model"]): row for row in reversed(rows)}
    pairs = [variant.segments for variant in variants if TASKS[variant.task].pair]
    table: list[Row] = []
    for segments, model in product(
        dict.fromkeys(pairs or ["none"]), dict.fromkeys(variant.model for variant in variants)
    ):
        own = [
            variant
            for variant in variants
            if variant.model == model and (variant.segments == segments or not TASKS[variant.task].pair)
        ]
        numbers = [number for variant in own for number in scores(best[variant.task, variant.label], protocol).items()]
        if len(own) < 2 or not {variant.task for variant in own} <= {name for name, _ in numbers}:
            continue
        encoding = encoding_of(read_json(output / "models" / f"{model.slug}.json")["encoding"])
        comparable = protocol == "diet" and {name for name, _ in numbers} == OF_THE_PAPER
        average = {
            "task": AVERAGE,
            "model": Variant("", model, segments).label,
            "score": round(fmean(number for _, number in numbers), 2),
            "of": f"{len(numbers)} numbers",
            "also": ", ".join(name for name, _ in numbers),
            "paper": paper("diet", encoding, segments, AVERAGE) if comparable else None,
        }
        table.append({**dict.fromkeys(rows[0]), **average})
    return table


def scores(row: Row, protocol: str) -> dict[str, float]:
    """Return the scores of a row that enter the average; empty if all training runs of the row diverged."""
    task = row["task"]
    splits = {task: HEADLINE.get(task, "valid"), **({MISMATCHED: "valid-mismatched"} if task == "MNLI" else {})}
    first = metrics(task, protocol)[0]
    return {name: row["scores"][split][first] for name, split in splits.items() if split in row["scores"]}
