"""Write comparison.json and curves.png: perplexity by encoding and memory, the paper's perplexity, and the cost."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from recipes.lib import records
from recipes.lib.curves import Curve, draw, read
from recipes.lib.encodings import Encoding, parse, published
from recipes.lib.package import figures, write_whole
from recipes.lib.recipe import Row
from recipes.lib.stages import read_json


def rows(encoding: Encoding, memories: list[int], curve: Curve, output: Path) -> list[Row]:
    """Return one row per memory, and mark the best one; the paper, too, reports the better of two memories."""
    scores = [read_json(output / "scores" / f"{encoding.slug}.{memory}.json") for memory in memories]
    best = min(score["token_ppl"] for score in scores)
    cost = records.cost(output, f"train:{encoding.slug}")
    return [row(encoding, score, score["token_ppl"] == best, curve, cost) for score in scores]


def papers(encoding: Encoding, memory: int) -> float | None:
    """Return the paper's test perplexity with this memory in evaluation, or None if it has none."""
    return published(figures("LFHC", column=f"memory {memory}"), encoding)


def row(encoding: Encoding, score: dict[str, Any], best: bool, curve: Curve, cost: Row) -> Row:
    return {
        "encoding": encoding.label,
        "memory": score["memory"],
        "segment": score["segment"],
        "same length": score["same_length"],
        "options": score["pos_enc_args"],
        "perplexity": round(score["token_ppl"], 2),
        "of a word": round(score["word_ppl"], 2),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the recipe's folder")
    parser.add_argument("--pos-enc", action="append", required=True)
    parser.add_argument("--memories", action="append", required=True, help="of each encoding, parted by commas")
    asked = parser.parse_args()
    memories = {
        parse(label): [*map(int, text.split(","))] for label, text in zip(asked.pos_enc, asked.memories, strict=True)
    }
    curves = {one: read(asked.output / "logs" / f"{one.slug}.train.log") for one in memories}
    found = [row for one in memories for row in rows(one, memories[one], curves[one], asked.output)]
    points = {
        one.label: [(update, 2**bits) for update, bits in curve.valid or curve.train] for one, curve in curves.items()
    }
    draw(points, "validation perplexity", asked.output / "curves.png", log=True)
    write_whole(asked.output / "comparison.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
