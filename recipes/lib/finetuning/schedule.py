"""Print the schedule of a training as flags of fairseq-train: the learning rate falls linearly until the last update.

python -m recipes.lib.finetuning.schedule --data data/RTE --epochs 3 --batch 32 --warmup 0.1
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from .columns import record


def schedule(items: int, batch: int, epochs: int, warmup: float) -> list[object]:
    """Return the flags. An incomplete last batch of an epoch counts as an update."""
    updates = math.ceil(items / batch) * epochs
    ends = ["--max-epoch", epochs, "--max-update", updates, "--total-num-update", updates]
    return [*ends, "--warmup-updates", int(warmup * updates)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="DIR", help="Prepared folder with the training items.")
    add("--epochs", type=int, required=True, metavar="N", help="Number of epochs.")
    add("--batch", type=int, required=True, metavar="N", help="Number of training items per update.")
    add("--warmup", type=float, required=True, metavar="P", help="Fraction of the updates that belong to the warm-up.")
    args = parser.parse_args()
    train = record(args.data)["splits"]["train"]
    print(*schedule(train.get("windows", train.get("items")), args.batch, args.epochs, args.warmup))


if __name__ == "__main__":
    main()
