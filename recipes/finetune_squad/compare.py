"""Write comparison.json and curves.png: scores of models, of baselines and of the paper, and the cost of training."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from fairseq_posenc.metrics.squad import margin
from recipes.lib import divergence
from recipes.lib import seeds as seeds_of
from recipes.lib.curves import draw, figures, read
from recipes.lib.finetuning.comparison import comparable, write_rows
from recipes.lib.finetuning.questions.files import CHECKED, GOLD, RECORD, unreachable
from recipes.lib.package import read_parameters
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.seeds import Seeds
from recipes.lib.significance import average, compare_with_first, summary
from recipes.lib.stages import read_json

from . import published


class ComparedPaper(NamedTuple):
    """Name the paper with which the run is compared, and list the differences between the run and the paper.

    Attributes:
        name: Name of the paper.
        differs: Differences between the run and the paper, as short texts.
    """

    name: str
    differs: Sequence[str] = ()


def common(label: str, score: dict[str, Any]) -> Row:
    """Return the columns that models and baselines share; their values are None if there is no score."""
    return {
        "model": label,
        "EM": _rounded(score.get("em")),
        "F1": _rounded(score.get("f1")),
        "best EM": _rounded(score.get("best_exact")),
        "best F1": _rounded(score.get("best_f1")),
        "threshold of best F1": _rounded(score.get("best_f1_thresh")),
        "F1, answered": _rounded(score.get("HasAns_f1")),
        "F1, not answered": _rounded(score.get("NoAns_f1")),
        "questions": int(score["total"]) if score else None,
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


def row(
    label: str, slug: str, seeds: Seeds, output: Path, paper: ComparedPaper, baselines: dict[str, dict[str, float]]
) -> Row:
    """Return the row of a model, with means over the training runs that did not diverge."""
    slugs = seeds.slugs(slug)
    runs = divergence.runs(output, slugs)
    scores = [read_json(output / "scores" / f"{run}.json") for run in runs.finished]
    numbers = [name for name, value in scores[0].items() if not isinstance(value, str)] if scores else []
    score = {name: mean(score[name] for score in scores) for name in numbers}
    record, model = read_json(output / "data-bin" / slug / RECORD), read_json(output / CHECKED / f"{slug}.json")
    curves = [read(training_log(output, run)) for run in slugs]
    counts, version = record["splits"], record["version"]
    total, used = ((counts["train"][name], counts["valid"][name]) for name in ("given", "questions"))
    same = total == published.QUESTIONS[version]
    exact, f1 = published.figures(paper.name if same else "none", version, record["longest"], model["encoding"])
    differences = [*published.differences(paper.name, version, model, total, used), *paper.differs]
    spans = [points[-1][1] for run in runs.finished if (points := figures(training_log(output, run), "valid_spans"))]
    return {
        **common(label, score),
        **summary("F1", [score["f1"] for score in scores]),
        "encoding": model["encoding"],
        "paper's EM": exact or None,
        "paper's F1": f1 or None,
        "comparable": comparable(differences) if f1 else None,
        "beats baselines": bool(score)
        and all(above(score["f1"], baselines[name]) for name in baselines if name != GOLD),
        "diverged": runs.diverged,
        "run": next(iter(runs.finished), None),
        "windows right": average(spans, 4),
        "out of reach": unreachable(output / "predictions" / runs.finished[0]) if runs.finished else None,
        "longest window": record["longest"],
        "questions of training": counts["train"]["questions"],
        "updates": curves[0].train[-1][0] if curves[0].train else None,
        "parameters": read_parameters(training_log(output, next(iter(slugs)))),
        **cost(output, *(f"train:{run}" for run in slugs)),
        "pieces/s": average([curve.speed for curve in curves if curve.speed]),
    }


def training_log(output: Path, run: str) -> Path:
    return output / "logs" / f"{run}.train.log"


def above(f1: float, baseline: dict[str, float]) -> bool:
    """Return whether an F1 is more than two standard errors above the F1 of a baseline."""
    return f1 > baseline["f1"] + margin(f1, baseline["f1"], baseline["total"])


def compare(models: list[tuple[str, str]], seeds: Seeds, output: Path, paper: ComparedPaper) -> list[Row]:
    """Return the rows of the models, then the rows of the baselines with the same columns."""
    baselines = read_json(output / "baselines.json")
    rows = [row(label, slug, seeds, output, paper, baselines) for label, slug in models]
    compare_with_first(rows, "F1")
    return rows + [{**dict.fromkeys(rows[0]), **common(name, scores)} for name, scores in baselines.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    option("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    option(
        "--paper", required=True, metavar="NAME", help="Paper with which the run is compared; `none` means no paper."
    )
    text = "Difference between the run and the paper; the option may be repeated."
    option("--differs", action="append", default=[], metavar="TEXT", help=text)
    text = "Label of a fine-tuned model, and its name in paths; the option may be repeated."
    option("--model", action="append", nargs=2, required=True, metavar=("LABEL", "SLUG"), help=text)
    seeds_of.add_options(parser)
    arguments = parser.parse_args()
    output, models = arguments.output, [(label, slug) for label, slug in arguments.model]
    seeds = Seeds.from_arguments(arguments)
    points = {
        seeds.label(label, seed): read(training_log(output, run)).train
        for label, slug in models
        for run, seed in seeds.slugs(slug).items()
    }
    draw(points, "training loss in bits per window", output / "curves.png")
    write_rows(compare(models, seeds, output, ComparedPaper(arguments.paper, arguments.differs)), output)


if __name__ == "__main__":
    main()
