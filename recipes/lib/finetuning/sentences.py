"""Predict the labels of GLUE's tasks and of XNLI with a fine-tuned model, and score the splits that have labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.data import data_utils

from fairseq_posenc.core.writing import whole_folder
from fairseq_posenc.metrics import classification

from .columns import Scores, record
from .tasks import TASKS

TOKENS = 8192  # tokens in a batch
HEADER = "index\tprediction"
FIRST = 4  # index of the first label in its dictionary, which begins with fairseq's four special symbols


def labels(folder: Path, split: str) -> list[int] | list[float]:
    """Return the class (in regression: the score) of each row of a split, in the order of the file."""
    numbers = folder / "label" / f"{split}.label"
    if numbers.is_file():
        return [float(line) for line in numbers.read_text("utf-8").split()]
    classes = data_utils.load_indexed_dataset(str(folder / "label" / split), None, "mmap")
    return [int(classes[number][0]) - FIRST for number in range(len(classes))]


@torch.no_grad()
def answers(model: Any, task: Any, split: str, *, gpu: bool) -> list[int] | list[float]:
    """Return the predicted class (in regression: the predicted score) of each row, in the order of the file."""
    task.load_dataset(split)
    options = {"max_tokens": TOKENS, "required_batch_size_multiple": 1, "disable_iterator_cache": True}
    by_row: dict[int, float] = {}
    for batch in task.get_batch_iterator(task.dataset(split), **options).next_epoch_itr(shuffle=False):
        moved = utils.move_to_cuda(batch) if gpu else batch
        head = task.cfg.classification_head_name
        logits, _ = model(**moved["net_input"], features_only=True, classification_head_name=head)
        rows = logits.float().view(-1) if task.cfg.regression_target else logits.argmax(1)
        by_row.update(zip(batch["id"].tolist(), rows.tolist(), strict=True))
    return [by_row[number] for number in range(len(by_row))]


def as_text(predictions: list[Any], facts: Mapping[str, Any]) -> list[str]:
    """Return predictions in GLUE's format: names of labels, or scores clipped to the range of the task."""
    if facts["labels"]:
        return [facts["labels"][answer] for answer in predictions]
    low, high = facts["bounds"]
    return [f"{min(max(answer, low), high):.3f}" for answer in predictions]


def evaluate(model: Any, task: Any, folder: Path, names: list[str], output: Path, *, gpu: bool) -> Scores:
    """Write the predictions for each split, as files for GLUE's server, and return the scores by split in percent."""
    facts, scores = record(folder), Scores()
    files = TASKS[facts["task"]].submissions
    with whole_folder(output) as partial:
        for split in facts["splits"]:
            if split == "train":
                continue
            predictions = answers(model, task, split, gpu=gpu)
            ids = (folder / f"{split}.ids").read_text("utf-8").split("\n")[:-1]
            lines = [HEADER, *map("\t".join, zip(ids, as_text(predictions, facts), strict=True))]
            (partial / files.get(split, f"{split}.tsv")).write_text("\n".join(lines) + "\n", "utf-8")
            if facts["splits"][split]["labelled"]:
                gold = labels(folder, split)
                scores[split] = {name: 100 * classification.METRICS[name](predictions, gold) for name in names}
    return scores


def constants(folder: Path, names: list[str]) -> tuple[Scores, Scores]:
    """Return the scores of the constant answer that is best on the training rows, and the margin above it, by split.

    A model beats the constant answer if its score is higher by more than the margin, two standard errors.
    """
    train, scores, margins = labels(folder, "train"), Scores(), Scores()
    for split, facts in record(folder)["splits"].items():
        if split != "train" and facts["labelled"]:
            gold = labels(folder, split)
            best = {name: classification.constants(name, train, gold)[1] for name in names}
            scores[split] = {name: 100 * score for name, score in best.items()}
            margins[split] = {name: 100 * classification.margin(name, len(gold), best[name]) for name in names}
    return scores, margins
