"""Evaluate the fine-tuned models of a run in one process, and choose the best hyperparameters on development data.

Each finished training answers all development and test sets. If several learning rates or numbers of epochs were tried,
the report shows the combination whose median over the seeds is best, and every training that diverged. For GLUE's
server, submission/ gets the test predictions of the seed with the median score.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple

from fairseq import checkpoint_utils

from fairseq_posenc.core.training_log import read_divergence
from fairseq_posenc.core.writing import write_whole
from recipes.lib.encodings import parse

from . import baselines, question_scores, questions, sentences
from .check import SEGMENTS
from .columns import Scores
from .tasks import TASKS, metrics


class Trial(NamedTuple):
    """Name a training run: the model (a line of models.tsv), and its learning rate and number of epochs."""

    name: str
    encoding: str
    seed: str
    item: str
    lr: str
    epochs: str


class Outcome(NamedTuple):
    """Hold the scores of a training run by split, or the reason why it has none."""

    trial: Trial
    scores: Scores
    failed: str


def trials(run: Path, lrs: list[str], epochs: list[str]) -> list[Trial]:
    """Return all training runs. Their names have the hyperparameters only if there are several."""
    several = len(lrs) * len(epochs) > 1
    lines = [line.split("\t") for line in (run / "models.tsv").read_text("utf-8").splitlines()]
    return [
        Trial(f"{name}.lr{lr}.e{count}" if several else name, encoding, seed, item, lr, count)
        for name, encoding, seed, item in lines
        for lr, count in product(lrs, epochs)
    ]


def data_of(run: Path, item: str, encoding: str) -> Path:
    """Return the prepared folder of a task: all models of a pretraining run share one, others have one each."""
    base = encoding
    for suffix in SEGMENTS.values():
        base = base.removesuffix(suffix)
    own = [run / "data" / f"{item}.{parse(label).slug}" for label in (encoding, base)]
    return next(filter(Path.exists, own), run / "data" / item)


def outcome(trial: Trial, arguments: argparse.Namespace) -> Outcome:
    """Return the scores of a training run. They are kept in trials/, so that an interrupted evaluation continues."""
    run: Path = arguments.run
    folder = data_of(run, trial.item, trial.encoding)
    keep = arguments.keep if "valid" in questions_or_rows(folder) else "last"
    checkpoint = run / "checkpoints" / trial.name / f"checkpoint_{keep}.pt"
    if divergence := read_divergence(run / "logs" / f"{trial.name}.train.log"):
        return Outcome(trial, {}, f"diverged: {divergence}")
    if not checkpoint.is_file():
        return Outcome(trial, {}, f"failed; its log is logs/{trial.name}.train.log")
    state = checkpoint.stat()
    key, kept = [state.st_size, state.st_mtime_ns, arguments.key], run / "trials" / f"{trial.name}.json"
    if not kept.is_file() or json.loads(kept.read_text("utf-8"))["key"] != key:
        answer = of_sentences if trial.item in TASKS else of_questions
        scores = answer(trial, checkpoint, folder, arguments)
        kept.parent.mkdir(exist_ok=True)
        write_whole(kept, json.dumps({"key": key, "scores": scores}, indent=1))
    scores = json.loads(kept.read_text("utf-8"))["scores"]
    print(f"{trial.name}: {json.dumps(scores)}", flush=True)
    return Outcome(trial, scores, "")
