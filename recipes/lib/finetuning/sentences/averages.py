"""Average the scores of a model over tasks, as the DIET paper does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean

from recipes.lib.recipe import Row
from recipes.lib.significance import of_medians
from recipes.lib.stages import read_json

from ..comparison import comparable, encoding_of, together
from ..trials import Variant
from .published import MISMATCHED, paper
from .tasks import HEADLINE, TASKS, metrics

AVERAGE = "average"  # the task of the rows with means over tasks
#: The numbers in the averages of the DIET paper.
OF_THE_PAPER = ("MNLI", MISMATCHED, "QQP", "QNLI", "SST-2", "CoLA", "STS-B")


def averages(rows: Sequence[Row], variants: Sequence[Variant], output: Path, protocol: str) -> list[Row]:
    """Return a row with the mean score over all tasks for each model and segment encoding.

    The list is empty if there is only one task. The matched and the mismatched set of MNLI count as two scores. A
    segment encoding matters only for pairs of sentences, so the score on a task of single sentences enters the mean of
    every segment encoding. A model gets no row if it has no score on one of the tasks. The average of a seed is the
    mean score, over all tasks, of the training runs with this seed. A seed has no average if one of its training runs
    diverged.

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
            best[variant.task, variant.label]
            for variant in variants
            if variant.model == model and (variant.segments == segments or not TASKS[variant.task].pair)
        ]
        numbers = {name: number for row in own for name, number in scores(row["task"], row["scores"], protocol).items()}
        if len(own) < 2 or not {row["task"] for row in own} <= numbers.keys():
            continue
        encoding = encoding_of(read_json(output / "models" / f"{model.slug}.json")["encoding"])
        reported = paper("diet", encoding, segments, AVERAGE) if protocol == "diet" else None
        average = {
            "task": AVERAGE,
            "model": Variant("", model, segments).label,
            **of_medians("score", fmean(numbers.values()), of_seeds(own, protocol)),
            "of": f"{len(numbers)} numbers",
            "also": ", ".join(numbers),
            **(beside_the_paper(reported, numbers, own) if reported is not None else {}),
        }
        table.append({**dict.fromkeys(rows[0]), **average})
    return table


def of_seeds(rows: Sequence[Row], protocol: str) -> list[float]:
    """Return the average over the rows for each seed whose training runs all finished."""
    seeds = [seed for seed in rows[0]["scores of seeds"] if all(seed in row["scores of seeds"] for row in rows)]
    return [
        fmean(number for row in rows for number in scores(row["task"], row["scores of seeds"][seed], protocol).values())
        for seed in seeds
    ]


def beside_the_paper(reported: float, numbers: Mapping[str, float], rows: Sequence[Row]) -> Row:
    """Return the column `paper` (None if the paper averages other scores or other data) and the column `comparable`.

    Args:
        reported: The average in the paper.
        numbers: The numbers that the run averages, keyed by the name of the task or set.
        rows: Rows of the tasks.
    """
    missing = [name for name in OF_THE_PAPER if name not in numbers]
    others = [name for name in numbers if name not in OF_THE_PAPER]
    differs = [f"no score on {', '.join(missing)}"] if missing else []
    differs += [f"the paper's average is without {', '.join(others)}"] if others else []
    differs += together({row["task"]: row["other data"] for row in rows})
    text = comparable([*differs, *together({row["task"]: row["differs"] for row in rows})])
    return {"paper": None if differs else reported, "comparable": text}


def scores(task: str, by_split: Mapping[str, Mapping[str, float]], protocol: str) -> dict[str, float]:
    """Return the task's scores for the average, or an empty dictionary if all training runs diverged.

    Args:
        task: Name of the task.
        by_split: Scores of the task, keyed by split and by metric.
        protocol: Name of the fine-tuning protocol.
    """
    splits = {task: HEADLINE.get(task, "valid"), **({MISMATCHED: "valid-mismatched"} if task == "MNLI" else {})}
    first = metrics(task, protocol)[0]
    return {name: by_split[split][first] for name, split in splits.items() if split in by_split}
