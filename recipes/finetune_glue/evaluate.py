"""A fine-tuned model's scores on the splits that have labels, and its answers on all of them.

The answers of test splits are in GLUE's submission format, under GLUE's names.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, utils

import fairseq_posenc  # noqa: F401  registers the architectures, and what a checkpoint may hold
from fairseq_posenc.metrics import classification
from recipes.lib.checkpoints import updates
from recipes.lib.finetuning.sentences.tasks import TASKS
from recipes.lib.lines import write
from recipes.lib.package import whole_folder, write_whole
from recipes.lib.stages import read_json

from .data import ids, labels

TOKENS = 8192  # of a batch
HEADER = "index\tprediction"


@torch.no_grad()
def answers(model: Any, task: Any, split: str, gpu: bool) -> list[int] | list[float]:
    """Of each row, in the order of the file: the class, or the number."""
    task.load_dataset(split)
    options = {"max_tokens": TOKENS, "required_batch_size_multiple": 1, "disable_iterator_cache": True}
    iterator = task.get_batch_iterator(task.dataset(split), **options)
    found: dict[int, float] = {}
    for batch in iterator.next_epoch_itr(shuffle=False):
        moved = utils.move_to_cuda(batch) if gpu else batch
        logits, _ = model(
            **moved["net_input"], features_only=True, classification_head_name=task.cfg.classification_head_name
        )
        rows = logits.float().view(-1) if task.cfg.regression_target else logits.argmax(1)
        found.update(zip(batch["id"].tolist(), rows.tolist(), strict=True))
    return [found[number] for number in range(len(found))]


def told(found: list[Any], record: dict[str, Any]) -> list[str]:
    """As GLUE has them: labels by name, numbers within their bounds."""
    if record["labels"]:
        return [record["labels"][answer] for answer in found]
    low, high = record["bounds"]
    return [f"{min(max(answer, low), high):.3f}" for answer in found]


def evaluate(model: Any, task: Any, folder: Path, names: list[str], output: Path, gpu: bool) -> dict[str, Any]:
    """Scores in percent by split; `output` gets a file a split."""
    record, scores = read_json(folder / "glue.json"), dict[str, Any]()
    files = TASKS[record["task"]].submissions
    with whole_folder(output) as partial:
        for split in record["splits"]:
            if split == "train":
                continue
            found = answers(model, task, split, gpu)
            rows = zip(ids(folder, split), told(found, record), strict=True)
            write(partial / files.get(split, f"{split}.tsv"), [HEADER, *("\t".join(row) for row in rows)])
            if record["splits"][split]["labelled"]:
                wanted = labels(folder, split)
                scores[split] = {name: 100 * classification.METRICS[name](found, wanted) for name in names}
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="what prepare_glue.py made")
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--predictions", type=Path, required=True, help="folder for the answers")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cpu", action="store_true", help="also where there is a GPU")
    asked = parser.parse_args()
    gpu = torch.cuda.is_available() and not asked.cpu
    overrides = {"data": str(asked.data)}
    found, _, task = checkpoint_utils.load_model_ensemble_and_task([str(asked.checkpoint)], overrides)
    model = found[0].eval()
    if gpu:
        model.cuda()
    scores = evaluate(model, task, asked.data, asked.metrics.split(","), asked.predictions, gpu)
    weights = sum(weight.numel() for weight in model.parameters())
    facts = {"scores": scores, "parameters": weights, "updates": updates(asked.checkpoint)}
    write_whole(asked.output, json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
