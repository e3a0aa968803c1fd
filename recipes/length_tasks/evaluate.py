"""Score the models of a run: the percentage of test examples without a wrong prediction, in all and for each length.

Each model gets a file scores/NAME.json. Its value `beyond.12` is the exact match for examples of length 12.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean

import torch
from fairseq import utils

import fairseq_posenc.models  # noqa: F401  registers the architectures and the types that checkpoints may contain
from fairseq_posenc.core.writing import write_whole
from fairseq_posenc.metrics.exact_match import exact_matches
from recipes.lib import checkpoints
from recipes.lib.runs import finished

TOKENS = 8192  # number of tokens in a batch
#: A training run has solved a task if at least this percentage of longer examples is right (Delétang et al. 2023).
SOLVED = 90.0
Matches = dict[int, list[bool]]  # for each length and example: whether all tokens are predicted correctly


@torch.no_grad()
def matches(loaded: checkpoints.Loaded, split: str) -> Matches:
    """Return which examples of a test set have no wrong prediction."""
    task = loaded.task
    task.load_dataset(split)
    dataset = task.dataset(split)
    options = {"max_tokens": TOKENS, "required_batch_size_multiple": 1, "disable_iterator_cache": True}
    by_length: Matches = defaultdict(list)
    for batch in task.get_batch_iterator(dataset, **options).next_epoch_itr(shuffle=False):
        moved = utils.move_to_cuda(batch) if loaded.on_gpu else batch
        exact = exact_matches(loaded.model(**moved["net_input"])[0], moved["target"], task.dictionary.pad())
        for number, right in zip(batch["id"].tolist(), exact.tolist(), strict=True):
            by_length[dataset.examples[number].length].append(right)
    return by_length


def percentages(splits: dict[str, Matches]) -> dict[str, float]:
    """Return the exact match of each test set and length in percent, and whether `beyond` is solved (100 or 0)."""
    totals = {
        split: 100 * mean(right for rows in lengths.values() for right in rows) for split, lengths in splits.items()
    }
    by_length = {
        f"{split}.{length}": 100 * mean(rows)
        for split, lengths in splits.items()
        for length, rows in sorted(lengths.items())
    }
    return {**totals, "solved": 100.0 * (totals["beyond"] >= SOLVED), **by_length}


def scores(checkpoint: Path, data: Path, *, cpu: bool) -> dict[str, float]:
    """Return the scores of a checkpoint on the test sets `within` and `beyond`, and the model's size."""
    loaded = checkpoints.load(checkpoint, {"data": str(data)}, cpu=cpu)
    facts = percentages({split: matches(loaded, split) for split in ("within", "beyond")})
    parameters = sum(weight.numel() for weight in loaded.model.parameters())
    return {**facts, "parameters": parameters, "updates": checkpoints.updates(checkpoint)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    parser.add_argument("--cpu", action="store_true", help="Use the CPU even if there is a GPU.")
    arguments = parser.parse_args()
    run: Path = arguments.run
    for model in finished(run):
        checkpoint = run / "checkpoints" / model.name / "checkpoint_last.pt"
        facts = scores(checkpoint, run / "data" / model.item, cpu=arguments.cpu)
        write_whole(run / "scores" / f"{model.name}.json", json.dumps(facts, indent=1) + "\n")
        print(f"{model.name}: exact match {facts['within']:.1f} % within, {facts['beyond']:.1f} % beyond")


if __name__ == "__main__":
    main()
