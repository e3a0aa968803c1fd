"""Score a checkpoint on the test sets, and write its answers: a line for each row with its name, label and answer."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, utils

import fairseq_posenc  # noqa: F401  registers the architectures, and what a checkpoint may hold
from recipes.lib.checkpoints import updates
from recipes.lib.lines import read, write
from recipes.lib.package import whole_folder, write_whole
from recipes.lib.stages import read_json

from . import scores

TOKENS = 16384  # of a batch


@torch.no_grad()
def answers(model: Any, task: Any, split: str, gpu: bool) -> list[int]:
    """Return the class that the model gives each row of a split."""
    task.load_dataset(split)
    options = {"max_tokens": TOKENS, "required_batch_size_multiple": 1, "disable_iterator_cache": True}
    iterator = task.get_batch_iterator(task.dataset(split), **options)
    classes: dict[int, int] = {}
    for batch in iterator.next_epoch_itr(shuffle=False):
        moved = utils.move_to_cuda(batch) if gpu else batch
        head = task.cfg.classification_head_name
        logits, _ = model(**moved["net_input"], features_only=True, classification_head_name=head)
        classes.update(zip(batch["id"].tolist(), logits.argmax(1).tolist(), strict=True))
    return [classes[number] for number in range(len(classes))]


def evaluate(
    model: Any, task: Any, folder: Path, metrics: list[str], splits: list[str], predictions: Path, gpu: bool
) -> dict[str, Any]:
    """Return the score and the accuracy by length; `predictions` gets a file for each split."""
    names = read_json(folder / "glue.json")["labels"]
    given = {split: answers(model, task, split, gpu) for split in splits}
    wanted = {split: scores.labels(folder, split) for split in splits}
    with whole_folder(predictions) as partial:
        for split in splits:
            table = zip(read(folder / f"{split}.ids"), wanted[split], given[split], strict=True)
            lines = (f"{row}\t{names[label]}\t{names[answer]}" for row, label, answer in table)
            write(partial / f"{split}.tsv", ["row\tlabel\tanswer", *lines])
    together = [[number for split in splits for number in numbers[split]] for numbers in (given, wanted)]
    rows = [row for split in splits for row in scores.words(folder, split)]
    each = {split: scores.score({split: given[split]}, {split: wanted[split]}, metrics) for split in splits}
    return {
        "score": scores.score(given, wanted, metrics),
        "splits": each,
        "lengths": scores.by_length(rows, together[0], together[1]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint to score.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="Prepared folder.")
    parser.add_argument("--metrics", required=True, metavar="A,B", help="Scores whose mean counts.")
    parser.add_argument("--splits", required=True, metavar="A,B", help="Test sets.")
    parser.add_argument("--predictions", type=Path, required=True, metavar="DIR", help="Folder for the answers.")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    parser.add_argument("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    arguments = parser.parse_args()
    gpu = torch.cuda.is_available() and not arguments.cpu
    overrides = {"data": str(arguments.data)}
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(arguments.checkpoint)], overrides)
    model = models[0].eval()
    if gpu:
        model.cuda()
    metrics, splits = arguments.metrics.split(","), arguments.splits.split(",")
    facts = evaluate(model, task, arguments.data, metrics, splits, arguments.predictions, gpu)
    facts["parameters"] = sum(weight.numel() for weight in model.parameters())
    facts["updates"] = updates(arguments.checkpoint)
    write_whole(arguments.output, json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
