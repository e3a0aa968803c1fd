"""Write comparison.json and curves.png: perplexity by encoding and memory length, the paper's perplexity, and cost."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from recipes.lib import divergence, records
from recipes.lib import seeds as seeds_of
from recipes.lib.curves import Points, draw, read
from recipes.lib.encodings import Encoding, add_option, parse, published
from recipes.lib.logs import training_log
from recipes.lib.package import figures, write_whole
from recipes.lib.recipe import Row
from recipes.lib.seeds import Seeds
from recipes.lib.significance import average, compare_with_first, summary
from recipes.lib.stages import read_json

from .settings import TYPES


def rows(encoding: Encoding, memories: list[int], seeds: Seeds, output: Path) -> list[Row]:
    """Return one row for each memory length, and mark the row with the lowest perplexity.

    Table 3 of the LFHC paper also shows the best perplexity of each encoding.
    """
    slugs = seeds.slugs(encoding.slug)
    runs = divergence.runs(output, slugs)
    speeds = [curve.speed for slug in slugs if (curve := read(training_log(output, slug))).speed]
    shared = {
        "diverged": runs.diverged,
        "checkpoint": next(iter(runs.finished), None),
        **records.cost(output, *(f"train:{slug}" for slug in slugs)),
        "tokens/s": average(speeds),
    }
    table = []
    for memory in memories:
        scores = [read_json(output / "scores" / f"{slug}.{memory}.json") for slug in runs.finished]
        table.append({**row(encoding, memory, scores), **shared})
    best = min((row["perplexity"] for row in table if row["perplexity"] is not None), default=None)
    return [{**row, "best": best is not None and row["perplexity"] == best} for row in table]


def papers(encoding: Encoding, memory: int) -> float | None:
    """Return the paper's test perplexity with this memory length, or None if the paper does not report it."""
    return published(figures("LFHC", column=f"memory {memory}"), encoding)


def row(encoding: Encoding, memory: int, scores: list[dict[str, Any]]) -> Row:
    """Return the row of an encoding and a memory length; its means over the seeds are None if `scores` is empty."""

    def mean(name: str, digits: int | None = None) -> float | None:
        return average([score[name] for score in scores], digits)

    first = scores[0] if scores else {}
    return {
        "encoding": encoding.label,
        "memory": memory,
        "segment": first.get("segment"),
        "same length": first.get("same_length"),
        "options": first.get("pos_enc_args"),
        **summary("perplexity", [score["token_ppl"] for score in scores]),
        "per word": mean("word_ppl", 2),
        "paper": papers(encoding, memory),
        "split": first.get("split"),
        "tokens": first.get("tokens"),
        "words": first.get("words"),
        "nats": mean("token_nll", 6),
        "updates": mean("updates"),  # of checkpoint_best.pt, which is evaluated
        "parameters": first.get("parameters"),
        "seconds of evaluation": mean("seconds", 1),
    }


def papers_text(folder: Path, split: str) -> bool:
    """Return whether a split is the test text of WikiText-103, which the paper evaluates.

    WikiText-2 has the same test text as WikiText-103, but fewer word types.
    """
    counts = folder / "counts.json"
    return split == "test" and counts.is_file() and read_json(counts)["types"] == TYPES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    add_option(parser, "compare with the first one")
    text = "Memory lengths to report; give one list for each --pos-enc."
    add("--memories", action="append", required=True, metavar="N,...", help=text)
    add("--text", type=Path, required=True, metavar="DIR", help="Folder of the prepared text (with counts.json).")
    add("--split", required=True, metavar="NAME", help="Split that was evaluated.")
    seeds_of.add_options(parser)
    args = parser.parse_args()
    seeds = Seeds.from_arguments(args)
    table: list[Row] = []
    points: dict[str, Points] = {}
    for label, memories in zip(args.pos_enc, args.memories, strict=True):
        encoding = parse(label)
        table += rows(encoding, [*map(int, memories.split(","))], seeds, args.output)
        for slug, seed in seeds.slugs(encoding.slug).items():
            curve = read(training_log(args.output, slug))
            points[seeds.label(label, seed)] = [(update, 2**bits) for update, bits in curve.valid or curve.train]
    if not papers_text(args.text, args.split):
        table = [{**row, "paper": None} for row in table]
    compare_with_first(table, "perplexity", "memory")
    draw(points, "validation perplexity", args.output / "curves.png", log=True)
    write_whole(args.output / "comparison.json", json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
