"""Run the steps of the toy recipe: write words, "train" on them in milliseconds, and score the result.

Tests choose with environment variables what goes wrong, and where; a place is the name of the file to write.
TOY_STOP=PLACES writes its place to the named pipe TOY_PIPE and waits to be killed; TOY_FAIL=PLACE fails;
TOY_FULL=PLACE finds the disk full; TOY_NAN=PLACE diverges; TOY_SAY=TEXT fails with a text; TOY_RISE=yes lets the loss
rise.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import sys
import zlib
from pathlib import Path

UPDATES = 4


def meet(place: str) -> None:
    """Do what the test asks for at this place."""
    if place in os.environ.get("TOY_STOP", "").split():
        Path(os.environ["TOY_PIPE"]).write_text(f"{place}\n")
        signal.pause()
    if text := os.environ.get("TOY_SAY"):
        sys.exit(text)
    if os.environ.get("TOY_FAIL") == place:
        sys.exit(f"error: {place} fails, as TOY_FAIL says")
    if os.environ.get("TOY_FULL") == place:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)


def write(path: Path, text: str) -> None:
    """Write a file in two parts; a test may stop between them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("half written")
    meet(path.name)
    path.write_text(text)


def train(arguments: list[str]) -> None:
    """Train as fairseq-train does: log losses as JSON, save each update, and continue from the last checkpoint."""
    parser = argparse.ArgumentParser()
    for flag in ("pos-enc", "pos-enc-args", "save-dir"):
        parser.add_argument(f"--{flag}", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("text", type=Path)
    args, _ = parser.parse_known_args(arguments)
    folder = Path(args.save_dir)
    checkpoint = folder / "checkpoint_last.json"
    state = json.loads(checkpoint.read_text()) if checkpoint.exists() else {"update": 0, "weight": args.seed}
    print(f"GPUs: {os.environ.get('CUDA_VISIBLE_DEVICES', 'all')}")
    print(f"starts at update {state['update']}")
    words = args.text.read_bytes() + args.pos_enc.encode() + args.pos_enc_args.encode()
    for update in range(state["update"] + 1, UPDATES + 1):
        meet(f"{folder.name}@{update}")
        if os.environ.get("TOY_NAN") == f"{folder.name}@{update}":
            print(f'x | ERROR | diverged | {{"num_updates": {update}, "loss": 1.5}}')
            raise FloatingPointError("the loss is not finite")
        loss = 4 * update if os.environ.get("TOY_RISE") else 4 / update
        state = {"update": update, "weight": zlib.crc32(words, state["weight"])}
        print(f'x | INFO | train_inner | {{"num_updates": {update}, "loss": {loss}, "wps": 10}}')
        print(f'x | INFO | valid | {{"valid_num_updates": {update}, "valid_loss": {5 / update}}}')
        checkpoint.with_suffix(".new").write_text(json.dumps(state))
        checkpoint.with_suffix(".new").rename(checkpoint)


def main() -> None:
    if sys.argv[1] == "train":
        return train(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["words", "score"])
    parser.add_argument("--word")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--share", type=float)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    if args.what == "words":
        return write(args.output, f"{args.word}\n" * args.repeats)
    points = args.share * (json.loads(args.checkpoint.read_text())["weight"] % 10000) / 100
    return write(args.output, json.dumps({"points": points, "signature": "toy|1"}))


if __name__ == "__main__":
    main()
