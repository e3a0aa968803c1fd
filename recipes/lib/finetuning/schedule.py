"""Print the schedule of a training as flags of fairseq-train: the learning rate falls linearly until the last update.

python -m recipes.lib.finetuning.schedule --record data/glue.json --epochs 3 --batch 32 --warmup 0.1
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path


def items(record: Path) -> int:
    """Return the number of training items in the record of a prepared folder: rows, or windows of questions."""
    train = json.loads(record.read_text("utf-8"))["splits"]["train"]
    return int(train["windows"] if "windows" in train else train["items"])


def schedule(count: int, batch: int, epochs: int, warmup: float) -> list[object]:
    """Return the flags. An incomplete last batch of an epoch counts as an update."""
    updates = math.ceil(count / batch) * epochs
    ends = ["--max-epoch", epochs, "--max-update", updates, "--total-num-update", updates]
    return [*ends, "--warmup-updates", int(warmup * updates)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--record", type=Path, required=True, metavar="FILE", help="Record with the number of training items.")
    add("--epochs", type=int, required=True, metavar="N", help="Number of epochs.")
    add("--batch", type=int, required=True, metavar="N", help="Number of training items per update.")
    add("--warmup", type=float, required=True, metavar="P", help="Fraction of the updates that belong to the warm-up.")
    args = parser.parse_args()
    print(*schedule(items(args.record), args.batch, args.epochs, args.warmup))


if __name__ == "__main__":
    main()
