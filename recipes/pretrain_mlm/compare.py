"""Write comparison.json and curves.png: the loss of each encoding, when it left the plateau, and its training cost."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from recipes.lib.curves import Curve, Points, draw, read
from recipes.lib.encodings import Encoding, parse_all
from recipes.lib.package import write_whole
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.stages import read_json

LEFT = 0.5  # a model has left the plateau when its loss is this many bits below that of unigram frequencies


def row(encoding: Encoding, curve: Curve, plateau: float, output: Path) -> Row:
    """Return the row of an encoding in the table of results."""
    score = read_json(output / "scores" / f"{encoding.slug}.json")
    return {
        "encoding": encoding.label,
        "loss, bits": round(score["bits"], 3),
        "loss, nats": round(score["nats"], 3),
        "perplexity": round(score["perplexity"], 2),
        "accuracy": round(score["accuracy"], 4),
        "left the plateau": left(curve.train, plateau),
        "updates": score["updates"],
        "parameters": score["parameters"],
        **cost(output, f"train:{encoding.slug}"),
        "pieces/s": curve.speed and round(curve.speed),
    }


def left(points: Points, plateau: float) -> int | None:
    """Return the first update after which the training loss stays `LEFT` bits below the plateau, or None."""
    above = [update for update, loss in points if loss > plateau - LEFT]
    below = [update for update, _ in points if not above or update > above[-1]]
    return below[0] if below else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    parser.add_argument("--pos-enc", action="append", required=True, metavar="NAME", help="Encoding; may be repeated.")
    args = parser.parse_args()
    encodings = parse_all(args.pos_enc)
    plateau = read_json(args.output / "unigrams.json")["bits"]
    curves = {encoding: read(args.output / "logs" / f"{encoding.slug}.train.log") for encoding in encodings}
    rows = [row(encoding, curve, plateau, args.output) for encoding, curve in curves.items()]
    points = {encoding.label: curve.valid or curve.train for encoding, curve in curves.items()}
    floor = ("loss of a model that only knows piece frequencies", plateau)
    draw(points, "validation loss in bits per masked piece", args.output / "curves.png", floor=floor)
    write_whole(args.output / "comparison.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
