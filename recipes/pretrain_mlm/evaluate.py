"""Compute the loss of a checkpoint on the validation text, with the same masks for every encoding and training seed."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from fairseq.tasks.fairseq_task import FairseqTask
from torch import Tensor

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from recipes.lib.checkpoints import load, updates
from recipes.lib.package import write_whole

MASKS = 1  # random seed of the masks
TOKENS = 8192  # tokens in a batch


def batches(task: FairseqTask, gpu: bool) -> Iterator[dict[str, Any]]:
    """Yield the batches of the whole validation set."""
    task.load_dataset("valid")
    iterator = task.get_batch_iterator(task.dataset("valid"), max_tokens=TOKENS, disable_iterator_cache=True)
    for batch in iterator.next_epoch_itr(shuffle=False):
        yield utils.move_to_cuda(batch) if gpu else batch


def predicted(model: Any, batch: dict[str, Any], pad: int) -> tuple[Tensor, Tensor]:
    """Return the logits [N, V] and the targets [N] of the N masked pieces of a batch."""
    masked = batch["target"].ne(pad)
    return model(**batch["net_input"], masked_tokens=masked)[0], batch["target"][masked]


@torch.no_grad()
def evaluate(model: Any, task: Any, gpu: bool) -> dict[str, float]:
    """Return the loss in bits and nats, the perplexity, and the accuracy on masked pieces."""
    nats, correct, number = 0.0, 0, 0
    for batch in batches(task, gpu):
        logits, targets = predicted(model, batch, task.source_dictionary.pad())
        nats += float(torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum"))
        correct += int(logits.argmax(-1).eq(targets).sum())
        number += targets.numel()
    mean = nats / number
    return {
        "bits": mean / math.log(2),
        "nats": mean,
        "perplexity": math.exp(mean),
        "accuracy": correct / number,
        "predicted": number,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint to evaluate.")
    parser.add_argument("--data", required=True, metavar="DIR", help="First shard, which contains the validation text.")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    parser.add_argument("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    args = parser.parse_args()
    overrides = {"data": args.data, "seed": MASKS, "required_batch_size_multiple": 1}
    loaded = load(args.checkpoint, overrides, cpu=args.cpu)
    weights = sum(weight.numel() for weight in loaded.model.parameters())
    facts = {**evaluate(loaded.model, loaded.task, loaded.on_gpu), "parameters": weights}
    facts["updates"] = updates(args.checkpoint)
    write_whole(args.output, json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
