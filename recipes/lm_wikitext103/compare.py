"""Write comparison.json and curves.png: perplexity by encoding and memory, the paper's perplexity, and the cost."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from recipes.lib import records
from recipes.lib.curves import Curve, Points, draw, read
from recipes.lib.encodings import Encoding, parse, published
from recipes.lib.package import figures, write_whole
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json

from .settings import TYPES


def rows(encoding: Encoding, memories: list[int], curve: Curve, output: Path) -> list[Row]:
    """Return one row per memory length, and mark the best row. The paper reports the better of two memory lengths."""
    scores = [read_json(output / "scores" / f"{encoding.slug}.{memory}.json") for memory in memories]
    best = min(score["token_ppl"] for score in scores)
    cost = records.cost(output, f"train:{encoding.slug}")
    return [row(encoding, score, score["token_ppl"] == best, curve, cost) for score in scores]


def papers(encoding: Encoding, memory: int) -> float | None:
    """Return the paper's test perplexity with this memory length, or None if the paper does not report it."""
    return published(figures("LFHC", column=f"memory {memory}"), encoding)


def row(encoding: Encoding, score: dict[str, Any], best: bool, curve: Curve, cost: Row) -> Row:
    """Return the row of an encoding and a memory length in the table of results."""
    return {
        "encoding": encoding.label,
        "memory": score["memory"],
        "segment": score["segment"],
        "same length": score["same_length"],
        "options": score["pos_enc_args"],
        "perplexity": round(score["token_ppl"], 2),
        "per word": round(score["word_ppl"], 2),
        "paper": papers(encoding, score["memory"]),
        "best": best,
        "split": score["split"],
        "tokens": score["tokens"],
        "words": score["words"],
        "nats": round(score["token_nll"], 6),
        "updates": score["updates"],  # of checkpoint_best.pt, which is evaluated
        "parameters": score["parameters"],
        **cost,
        "seconds of evaluation": round(score["seconds"], 1),
        "tokens/s": curve.speed and round(curve.speed),
    }


def papers_text(folder: Path) -> bool:
    """Return whether a text is WikiText-103. WikiText-2 has the same test text, but fewer types of words."""
    counts = folder / "counts.json"
    return counts.is_file() and read_json(counts)["types"] == TYPES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    add("--pos-enc", action="append", required=True, metavar="NAME", help="Encoding; may be repeated.")
    text = "Memory lengths to report; give one list for each --pos-enc."
    add("--memories", action="append", required=True, metavar="N,...", help=text)
    add("--text", type=Path, required=True, metavar="DIR", help="Folder of the prepared text, with its counts.json.")
    args = parser.parse_args()
    table: list[Row] = []
    points: dict[str, Points] = {}
    for label, memories in zip(args.pos_enc, args.memories, strict=True):
        encoding = parse(label)
        curve = read(args.output / "logs" / f"{encoding.slug}.train.log")
        table += rows(encoding, [*map(int, memories.split(","))], curve, args.output)
        points[encoding.label] = [(update, 2**bits) for update, bits in curve.valid or curve.train]
    if not papers_text(args.text):
        table = [{**row, "paper": None} for row in table]
    draw(points, "validation perplexity", args.output / "curves.png", log=True)
    write_whole(args.output / "comparison.json", json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
