"""A training whose schedule is a number of epochs: fairseq's linear decay wants to know updates.

python -m recipes.lib.scheduled --record data/glue.json --count splits.train.items --epochs 3 --batch 32 --warmup 0.1 \
    -- fairseq-train DATA FLAGS

The command becomes this process, with --max-update, --total-num-update and --warmup-updates.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

from recipes.lib.machine import executable
from recipes.lib.stages import read_json


def counted(record: Path, place: str) -> int:
    """A number in a file of json: `splits.train.items`."""
    found = read_json(record)
    for name in place.split("."):
        found = found[name]
    return int(found)


def schedule(items: int, batch: int, epochs: int, warmup: float) -> list[str]:
    """The flags. The last batch of an epoch is what is left of it."""
    updates = math.ceil(items / batch) * epochs
    return [
        "--max-update",
        str(updates),
        "--total-num-update",
        str(updates),
        "--warmup-updates",
        str(int(warmup * updates)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--count", required=True, metavar="KEY.KEY", help="of the items of training, in the record")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True, help="items of an update")
    parser.add_argument("--warmup", type=float, required=True, help="part of the updates")
    parser.add_argument("command", nargs="+", help="after --")
    asked = parser.parse_args()
    command = [executable(asked.command[0]), *asked.command[1:]]
    command += schedule(counted(asked.record, asked.count), asked.batch, asked.epochs, asked.warmup)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
