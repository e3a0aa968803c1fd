"""Compute the loss of a checkpoint on the validation text, with the same masks for every encoding and training seed.

The JSON file also has the last training loss, and the update at which the training left the plateau: the first update
after which its loss stays at least half a bit below that of a model that only knows the frequencies of pieces.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import torch
from fairseq import utils

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.core.training_log import Points, read_losses
from fairseq_posenc.core.writing import write_whole
from recipes.lib.checkpoints import load, updates
from recipes.pretrain_mlm.unigrams import NAME

MASKS = 1  # random seed of the masks
TOKENS = 8192  # tokens in a batch
LEFT = 0.5  # bits below the unigram loss at which a model has left the plateau


@torch.no_grad()
def evaluate(model: Any, task: Any, gpu: bool) -> dict[str, float]:
    """Return the loss in bits and nats, the perplexity, and the accuracy on the masked pieces of the validation set."""
    nats, correct, number = 0.0, 0, 0
    task.load_dataset("valid")
    iterator = task.get_batch_iterator(task.dataset("valid"), max_tokens=TOKENS, disable_iterator_cache=True)
    for batch in iterator.next_epoch_itr(shuffle=False):
        batch = utils.move_to_cuda(batch) if gpu else batch
        masked = batch["target"].ne(task.source_dictionary.pad())
        targets = batch["target"][masked]  # [N]
        logits = model(**batch["net_input"], masked_tokens=masked)[0]  # [N, V]
        nats += float(torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum"))
        correct += int(logits.argmax(-1).eq(targets).sum())
        number += targets.numel()
    mean = nats / number
    scores = {"bits": mean / math.log(2), "nats": mean, "perplexity": math.exp(mean)}
    return {**scores, "accuracy": correct / number, "predicted": number}


def left(points: Points, plateau: float) -> dict[str, int]:
    """Return the update at which the training left the plateau for good; the result is empty if it never did."""
    above = [update for update, loss in points if loss > plateau - LEFT]
    below = [update for update, _ in points if not above or update > above[-1]]
    return {"left the plateau": below[0]} if below else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint to evaluate.")
    add("--data", required=True, metavar="DIR", help="First shard, which contains the validation text.")
    add("--unigrams", type=Path, required=True, metavar="FILE", help="JSON file with the unigram loss.")
    add("--log", type=Path, required=True, metavar="FILE", help="Log of the training.")
    add("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    add("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    args = parser.parse_args()
    overrides = {"data": args.data, "seed": MASKS, "required_batch_size_multiple": 1}
    loaded = load(args.checkpoint, overrides, cpu=args.cpu)
    points = read_losses(args.log).train
    facts = {
        **evaluate(loaded.model, loaded.task, loaded.on_gpu),
        **({"training loss": points[-1][1] * math.log(2)} if points else {}),
        **left(points, json.loads(args.unigrams.read_text())[NAME]),
        "parameters": sum(weight.numel() for weight in loaded.model.parameters()),
        "updates": updates(args.checkpoint),
    }
    write_whole(args.output, json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
