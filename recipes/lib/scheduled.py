"""Train for a number of epochs, with a learning rate that decays linearly until the last update.

fairseq needs the number of updates for this decay, so this program computes it from the number of training items.

python -m recipes.lib.scheduled --record data/glue.json --count splits.train.items --epochs 3 --batch 32 --warmup 0.1 \
    -- fairseq-train DATA FLAGS

The training command replaces this process and receives --max-update, --total-num-update and --warmup-updates.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

from recipes.lib.machine import executable
from recipes.lib.planning import flags
from recipes.lib.stages import read_json


def counted(record: Path, keys: str) -> int:
    """Return a number from a JSON file.

    Args:
        record: Path of the JSON file.
        keys: Keys that lead to the number, joined by dots, such as `splits.train.items`.
    """
    value = read_json(record)
    for name in keys.split("."):
        value = value[name]
    return int(value)


def schedule(items: int, batch: int, epochs: int, warmup: float) -> list[str]:
    """Return the schedule as flags of fairseq-train. An incomplete last batch of an epoch counts as an update."""
    updates = math.ceil(items / batch) * epochs
    return flags(max_update=updates, total_num_update=updates, warmup_updates=int(warmup * updates))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--record", type=Path, required=True, metavar="FILE", help="JSON file with the number of training items.")
    add(
        "--count",
        required=True,
        metavar="KEY.KEY",
        help="Keys that lead to the number of training items in --record, joined by dots.",
    )
    add("--epochs", type=int, required=True, metavar="N", help="Number of epochs.")
    add("--batch", type=int, required=True, metavar="N", help="Number of training items per update.")
    add("--warmup", type=float, required=True, metavar="P", help="Fraction of the updates that belong to the warm-up.")
    add("command", nargs="+", help="Training command to run, after --.")
    args = parser.parse_args()
    command = [executable(args.command[0]), *args.command[1:]]
    command += schedule(counted(args.record, args.count), args.batch, args.epochs, args.warmup)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
