"""Score a checkpoint on the test sets: the percentage of examples without a wrong prediction, for each length."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from fairseq import utils

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.metrics.exact_match import exact_matches
from recipes.lib import checkpoints
from recipes.lib.package import write_whole

TOKENS = 8192  # number of tokens in a batch
SPLITS = ("within", "beyond")


@torch.no_grad()
def matches(loaded: checkpoints.Loaded, split: str) -> dict[int, list[bool]]:
    """For each length, return a list that says for each example whether all its tokens are predicted correctly."""
    task = loaded.task
    task.load_dataset(split)
    dataset = task.dataset(split)
    options = {"max_tokens": TOKENS, "required_batch_size_multiple": 1, "disable_iterator_cache": True}
    by_length: dict[int, list[bool]] = defaultdict(list)
    for batch in task.get_batch_iterator(dataset, **options).next_epoch_itr(shuffle=False):
        moved = utils.move_to_cuda(batch) if loaded.on_gpu else batch
        exact = exact_matches(loaded.model(**moved["net_input"])[0], moved["target"], task.dictionary.pad())
        for number, right in zip(batch["id"].tolist(), exact.tolist(), strict=True):
            by_length[dataset.examples[number].length].append(right)
    return dict(sorted(by_length.items()))


def scores(loaded: checkpoints.Loaded) -> dict[str, Any]:
    """Return the exact match in percent on the test sets `within` and `beyond`, and for each length."""
    by_split = {split: matches(loaded, split) for split in SPLITS}
    return {
        **{
            split: 100 * mean(right for rows in lengths.values() for right in rows)
            for split, lengths in by_split.items()
        },
        "lengths": {
            split: {str(length): {"exact": 100 * mean(rows), "rows": len(rows)} for length, rows in lengths.items()}
            for split, lengths in by_split.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, metavar="FILE", help="Checkpoint to score.")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="Folder of examples.")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    parser.add_argument("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    arguments = parser.parse_args()
    loaded = checkpoints.load(arguments.checkpoint, {"data": str(arguments.data)}, cpu=arguments.cpu)
    facts = scores(loaded)
    facts["parameters"] = sum(weight.numel() for weight in loaded.model.parameters())
    facts["updates"] = checkpoints.updates(arguments.checkpoint)
    write_whole(arguments.output, json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
