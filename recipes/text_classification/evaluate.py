"""Score a checkpoint on the test sets, and write the id, the label and the predicted label of each row."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, utils

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from recipes.lib.checkpoints import updates
from recipes.lib.lines import read, write
from recipes.lib.package import whole_folder, write_whole
from recipes.lib.stages import read_json

from . import scores

TOKENS = 16384  # number of tokens in a batch


@torch.no_grad()
def answers(model: Any, task: Any, split: str, gpu: bool) -> list[int]:
    """Return the predicted class of each row of a split."""
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
    """Return the score and the accuracy by text length, and write a file of predictions for each split.

    Args:
        model: Trained model in evaluation mode.
        task: fairseq task of the model.
        folder: Folder of binary data.
        metrics: Metrics to average.
        splits: Splits to score.
        predictions: Folder for the predictions.
        gpu: Whether the model is on a GPU.
    """
    names = read_json(folder / "glue.json")["labels"]
    predicted = {split: answers(model, task, split, gpu) for split in splits}
    gold = {split: scores.labels(folder, split) for split in splits}
    with whole_folder(predictions) as partial:
        for split in splits:
            table = zip(read(folder / f"{split}.ids"), gold[split], predicted[split], strict=True)
            lines = (f"{row}\t{names[label]}\t{names[answer]}" for row, label, answer in table)
            write(partial / f"{split}.tsv", ["row\tlabel\tanswer", *lines])
    all_predicted, all_gold = ([label for split in splits for label in by[split]] for by in (predicted, gold))
    rows = [row for split in splits for row in scores.words(folder, split)]
    score_by_split = {split: scores.score({split: predicted[split]}, {split: gold[split]}, metrics) for split in splits}
    return {
        "score": scores.score(predicted, gold, metrics),
        "splits": score_by_split,
        "lengths": scores.by_length(rows, all_predicted, all_gold),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint to score.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="Folder of binary data.")
    parser.add_argument("--metrics", required=True, metavar="A,B", help="Metrics to average, such as accuracy,f1.")
    parser.add_argument("--splits", required=True, metavar="A,B", help="Test sets to score.")
    parser.add_argument("--predictions", type=Path, required=True, metavar="DIR", help="Folder for the predictions.")
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
