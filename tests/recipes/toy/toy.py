"""Run the steps of the toy recipe: write words, "learn" them and score what was learned."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path


def pause(name: str) -> None:
    """Fail or wait where the test says: TOY_FAIL and TOY_WAIT name a file whose name contains them."""
    if (word := os.environ.get("TOY_FAIL")) and word in name:
        sys.exit(f"error: {name} fails, as TOY_FAIL says")
    if (word := os.environ.get("TOY_WAIT")) and word in name:
        print("waiting", flush=True)
        time.sleep(600)  # until the test kills this process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["words", "learn", "score"])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rate", type=int, default=1)
    args = parser.parse_args()
    *words, output = args.words
    path = Path(output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("half written")
    pause(path.name)
    if args.what == "words":
        word, repeats = words
        text = f"{word}\n" * int(repeats)
    elif args.what == "learn":
        source, encoding, seed = words
        text = f"{Path(source).read_text()}{encoding} {int(seed) * args.rate}\n"
    else:
        source, share = words
        text = json.dumps({"points": float(share) * sum(Path(source).read_bytes()) % 100})
    path.write_text(text)


if __name__ == "__main__":
    main()
