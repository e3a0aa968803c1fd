"""Predict the labels of all splits with a fine-tuned model, and score the splits that have labels.

The predictions for test sets are written as files for a GLUE submission.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from fairseq import utils

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.metrics import classification
from recipes.lib.checkpoints import Loaded, load, updates
from recipes.lib.lines import write
from recipes.lib.package import whole_folder, write_whole
from recipes.lib.stages import read_json

from .data import ids, labels
from .plan import RECORD
from .tasks import TASKS

TOKENS = 8192  # tokens in a batch
HEADER = "index\tprediction"


@torch.no_grad()
def answers(trained: Loaded, split: str) -> list[int] | list[float]:
    """Return the predicted class (in regression: the predicted score) of each row, in the order of the file."""
    task = trained.task
    task.load_dataset(split)
    options = {"max_tokens": TOKENS, "required_batch_size_multiple": 1, "disable_iterator_cache": True}
    iterator = task.get_batch_iterator(task.dataset(split), **options)
    by_row: dict[int, float] = {}
    for batch in iterator.next_epoch_itr(shuffle=False):
        moved = utils.move_to_cuda(batch) if trained.on_gpu else batch
        logits, _ = trained.model(
            **moved["net_input"], features_only=True, classification_head_name=task.cfg.classification_head_name
        )
        rows = logits.float().view(-1) if task.cfg.regression_target else logits.argmax(1)
        by_row.update(zip(batch["id"].tolist(), rows.tolist(), strict=True))
    return [by_row[number] for number in range(len(by_row))]


def as_text(predictions: list[Any], record: dict[str, Any]) -> list[str]:
    """Return predictions in GLUE's format: names of labels, or scores clipped to the range of the task."""
    if record["labels"]:
        return [record["labels"][answer] for answer in predictions]
    low, high = record["bounds"]
    return [f"{min(max(answer, low), high):.3f}" for answer in predictions]


def evaluate(trained: Loaded, folder: Path, names: list[str], output: Path) -> dict[str, Any]:
    """Write the predictions for each split into `output`, and return the scores by split in percent."""
    record, scores = read_json(folder / RECORD), dict[str, Any]()
    files = TASKS[record["task"]].submissions
    with whole_folder(output) as partial:
        for split in record["splits"]:
            if split == "train":
                continue
            predictions = answers(trained, split)
            rows = zip(ids(folder, split), as_text(predictions, record), strict=True)
            write(partial / files.get(split, f"{split}.tsv"), [HEADER, *("\t".join(row) for row in rows)])
            if record["splits"][split]["labelled"]:
                gold = labels(folder, split)
                scores[split] = {name: 100 * classification.METRICS[name](predictions, gold) for name in names}
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint of the fine-tuned model.")
    option("--data", type=Path, required=True, metavar="DIR", help="Output folder of prepare_glue.py.")
    option("--metrics", required=True, metavar="A,B", help="Names of the metrics, such as accuracy,f1.")
    option("--predictions", type=Path, required=True, metavar="DIR", help="Folder for the predictions.")
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the scores.")
    option("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    arguments = parser.parse_args()
    trained = load(arguments.checkpoint, {"data": str(arguments.data)}, cpu=arguments.cpu)
    scores = evaluate(trained, arguments.data, arguments.metrics.split(","), arguments.predictions)
    weights = sum(weight.numel() for weight in trained.model.parameters())
    facts = {"scores": scores, "parameters": weights, "updates": updates(arguments.checkpoint)}
    write_whole(arguments.output, json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
