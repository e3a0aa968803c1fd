"""Write comparison.json and curves.png: each encoding's loss, the update at which it left the plateau, and its cost."""

from __future__ import annotations

import argparse
import json
from math import log
from pathlib import Path

from recipes.lib import divergence
from recipes.lib import seeds as seeds_of
from recipes.lib.curves import Points, draw, read
from recipes.lib.encodings import Encoding, add_option, parse_all, published
from recipes.lib.logs import training_log
from recipes.lib.package import figures, write_whole
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.seeds import Seeds
from recipes.lib.significance import average, compare_with_first, summary
from recipes.lib.stages import read_json

NATS = log(2)  # nats in a bit
LEFT = 0.5  # a model has left the plateau when its loss is this many bits below that of unigram frequencies


def row(encoding: Encoding, seeds: Seeds, plateau: float, output: Path) -> Row:
    """Return the row of an encoding in the table of results, with means over the training runs that did not diverge."""
    slugs = seeds.slugs(encoding.slug)
    runs = divergence.runs(output, slugs)
    scores = [read_json(output / "scores" / f"{slug}.json") for slug in runs.finished]
    curves = [read(training_log(output, slug)) for slug in runs.finished or slugs]
    ends = [curve.train[-1][1] for curve in curves if curve.train]
    first = scores[0] if scores else {}
    return {
        "encoding": encoding.label,
        **summary("loss, bits", [score["bits"] for score in scores], 3),
        "loss, nats": average([score["nats"] for score in scores], 3),
        "training loss, nats": average([bits * NATS for bits in ends], 3),
        "perplexity": average([score["perplexity"] for score in scores], 2),
        "accuracy": average([score["accuracy"] for score in scores], 4),
        "left the plateau": left(curves[0].train, plateau),
        "diverged": runs.diverged,
        "checkpoints": runs.finished,
        "updates": first.get("updates"),
        "parameters": first.get("parameters"),
        **cost(output, *(f"train:{slug}" for slug in slugs)),
        "pieces/s": average([curve.speed for curve in curves if curve.speed]),
    }


def left(points: Points, plateau: float) -> int | None:
    """Return the first update after which the training loss stays at least half a bit below the unigram loss.

    If there is no such update, return None.
    """
    above = [update for update, loss in points if loss > plateau - LEFT]
    below = [update for update, _ in points if not above or update > above[-1]]
    return below[0] if below else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    add_option(parser, "compare with the first one")
    text = "Show the training losses of the M4M paper (only if the run has the paper's text and model)."
    parser.add_argument("--paper", action="store_true", help=text)
    seeds_of.add_options(parser)
    args = parser.parse_args()
    seeds = Seeds.from_arguments(args)
    encodings = parse_all(args.pos_enc)
    plateau = read_json(args.output / "unigrams.json")["bits"]
    rows = [row(encoding, seeds, plateau, args.output) for encoding in encodings]
    if args.paper:
        losses = figures("M4M", table="Section 5.2", column="loss")
        table = [{**row, "paper": published(losses, encoding)} for row, encoding in zip(rows, encodings, strict=True)]
        rows = table if any(row["paper"] for row in table) else rows
    compare_with_first(rows, "loss, bits")
    points: dict[str, Points] = {}
    for encoding in encodings:
        for slug, seed in seeds.slugs(encoding.slug).items():
            curve = read(training_log(args.output, slug))
            points[seeds.label(encoding.label, seed)] = curve.valid or curve.train
    floor = ("loss of a model that only knows piece frequencies", plateau)
    draw(points, "validation loss in bits per masked piece", args.output / "curves.png", floor=floor)
    write_whole(args.output / "comparison.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
