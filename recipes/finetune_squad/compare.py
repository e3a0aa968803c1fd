"""Write comparison.json and curves.png: scores of models, of baselines and of the paper, and the cost of training."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairseq_posenc.metrics.squad import margin
from recipes.lib.curves import draw, figures, read
from recipes.lib.finetuning.comparison import comparable, write_rows
from recipes.lib.finetuning.questions.files import GOLD, RECORD, unreachable
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.stages import read_json

from . import published


class Beside(NamedTuple):
    """The paper whose scores are shown next to ours.

    Attributes:
        name: Name of the paper.
        differs: Differences of the run from the paper, in a few words each.
    """

    name: str
    differs: Sequence[str] = ()


def common(label: str, score: dict[str, Any]) -> Row:
    """Return the columns that both models and baselines have."""
    return {
        "model": label,
        "EM": round(score["em"], 2),
        "F1": round(score["f1"], 2),
        "best EM": _rounded(score.get("best_exact")),
        "best F1": _rounded(score.get("best_f1")),
        "threshold of best F1": _rounded(score.get("best_f1_thresh")),
        "F1, answered": _rounded(score.get("HasAns_f1")),
        "F1, not answered": _rounded(score.get("NoAns_f1")),
        "questions": int(score["total"]),
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


def row(label: str, slug: str, output: Path, paper: Beside, baselines: dict[str, dict[str, float]]) -> Row:
    """Return the row of a model."""
    score = read_json(output / "scores" / f"{slug}.json")
    record, model = read_json(output / "data-bin" / slug / RECORD), read_json(output / "checked" / f"{slug}.json")
    curve = read(output / "logs" / f"{slug}.train.log")
    counts, version = record["splits"], record["version"]
    total, used = ((counts["train"][name], counts["valid"][name]) for name in ("given", "questions"))
    same = total == published.QUESTIONS[version]
    exact, f1 = published.figures(paper.name if same else "none", version, record["longest"], model["encoding"])
    differences = [*published.differences(paper.name, version, model, total, used), *paper.differs]
    spans = figures(output / "logs" / f"{slug}.train.log", "valid_spans")
    return {
        **common(label, score),
        "encoding": model["encoding"],
        "paper's EM": exact,
        "paper's F1": f1,
        "comparable": None if f1 is None else comparable(differences),
        "beats baselines": all(above(score["f1"], scores) for name, scores in baselines.items() if name != GOLD),
        "windows right": round(spans[-1][1], 4) if spans else None,
        "out of reach": unreachable(output / "predictions" / slug),
        "longest window": record["longest"],
        "questions of training": counts["train"]["questions"],
        "updates": curve.train[-1][0] if curve.train else None,
        **cost(output, f"train:{slug}"),
        "pieces/s": curve.speed and round(curve.speed),
    }


def above(f1: float, baseline: dict[str, float]) -> bool:
    """Return whether an F1 is more than two standard errors above the F1 of a baseline."""
    return f1 > baseline["f1"] + margin(f1, baseline["f1"], baseline["total"])


def compare(models: list[tuple[str, str]], output: Path, paper: Beside) -> list[Row]:
    """Return the rows of the models, then the rows of the baselines with the same columns."""
    baselines = read_json(output / "baselines.json")
    rows = [row(label, slug, output, paper, baselines) for label, slug in models]
    return rows + [{**dict.fromkeys(rows[0]), **common(name, scores)} for name, scores in baselines.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    option("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    option("--paper", required=True, metavar="NAME", help="Paper whose numbers are shown next to ours, or none.")
    text = "A difference between the run and the paper."
    option("--differs", action="append", default=[], metavar="TEXT", help=text)
    option("--model", action="append", nargs=2, required=True, metavar=("LABEL", "SLUG"), help="A fine-tuned model.")
    arguments = parser.parse_args()
    output, models = arguments.output, [(label, slug) for label, slug in arguments.model]
    points = {label: read(output / "logs" / f"{slug}.train.log").train for label, slug in models}
    draw(points, "training loss in bits per window", output / "curves.png")
    write_rows(compare(models, output, Beside(arguments.paper, arguments.differs)), output)


if __name__ == "__main__":
    main()
