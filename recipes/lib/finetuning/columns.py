"""Turn the scores of a training run into the columns of the papers' tables, such as MNLI-mm, XNLI or `XQuAD F1`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from .tasks import QUESTIONS, TASKS, metrics

SENTENCES, WINDOWS = "glue.json", "spans.json"  # the records of prepared folders
NAMES = {"f1": "F1", "em": "EM", "matthews": "Matthews", "pearson": "Pearson", "spearman": "Spearman"}
Scores = dict[str, dict[str, float]]  # by split and metric; the splits of XQuAD and so on are called `XQuAD de`


def record(folder: Path) -> dict[str, Any]:
    """Return the record of a folder that prepare_glue.py or prepare_spans.py wrote."""
    file = next(path for name in (SENTENCES, WINDOWS) if (path := folder / name).exists())
    contents: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return contents


def slug(label: str) -> str:
    """Return a label as a part of a file name, as the function `slug` of recipe.sh does."""
    return re.sub(r"[\[,]", ".", label).replace("]", "").replace("/", "--").replace(":", "_").replace(" ", "_")


def data_of(run: Path, item: str, label: str) -> Path:
    """Return the prepared folder of a task: all models of a pretraining run share one, others have one each."""
    base = label.partition(", ")[0].removesuffix("+segments").removesuffix("+segments-input")
    own = [run / "data" / f"{item}.{slug(name)}" for name in (label.partition(", ")[0], base)]
    return next(filter(Path.exists, own), run / "data" / item)


def main_columns(folder: Path, item: str, scores: Scores, papers: str) -> dict[str, float]:
    """Return the scores that the report's table shows, keyed by the names of the columns in the papers' tables.

    Args:
        folder: Prepared folder on which the model was trained.
        item: The task on which the model was trained: one of `TASKS`, or SQuAD.
        scores: Scores by split.
        papers: Papers whose numbers stand beside ours; they decide which metric comes first.
    """
    if item == "XNLI":  # the mean over all languages, including English, as in XTREME
        return {item: fmean(scores[split]["accuracy"] for split in xnli_splits(scores).values())}
    if item in TASKS:
        first = metrics(item, papers)[0]
        splits = {"MNLI-m": "valid", "MNLI-mm": "valid-mismatched"} if item == "MNLI" else {item: "valid"}
        return {column: scores[split][first] for column, split in splits.items() if split in scores}
    by_set = {name: [scores[split] for split in scores if split.startswith(f"{name} ")] for name in QUESTIONS}
    if not any(by_set.values()):
        by_set = {f"SQuAD{record(folder)['version']}": [scores["valid"]]}
    means = {f"{name} {NAMES[metric]}": (own, metric) for name, own in by_set.items() if own for metric in ("em", "f1")}
    return {column: fmean(score[metric] for score in own) for column, (own, metric) in means.items()}


def more_columns(item: str, scores: Scores, papers: str) -> dict[str, float]:
    """Return the scores that a second table shows: further metrics of a task, and the scores of single languages."""
    if item == "XNLI":
        return {f"XNLI {code}": scores[split]["accuracy"] for code, split in xnli_splits(scores).items()}
    if item in TASKS:
        return {f"{item} {NAMES.get(name, name)}": scores["valid"][name] for name in metrics(item, papers)[1:]}
    shown = {split: ("f1", "em") for split in scores if split != "valid"} or {"valid": ("best_f1", "best_f1_thresh")}
    return {
        f"{'' if split == 'valid' else split} {NAMES.get(name, name.replace('_', ' '))}".strip(): scores[split][name]
        for split, names in shown.items()
        for name in names
        if name in scores[split]
    }


def xnli_splits(scores: Mapping[str, object]) -> dict[str, str]:
    """Return the split of XNLI that is scored in each language: the labelled test sets, or else the development sets.

    The development sets are returned if no test set has labels, or if only English has a labelled test set while other
    languages have labelled development sets.
    """
    tests, valid = (
        {split.partition("-")[2] or "en": split for split in scores if split.startswith(kind)}
        for kind in ("test-", "valid")
    )
    return tests if tests and (tests.keys() - {"en"} or not valid.keys() - {"en"}) else valid
