"""Write results.json, results.md and bleu.png from the results of the stages."""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import version
from pathlib import Path
from textwrap import wrap

from tabulate import tabulate

from fairseq_posenc.analysis import scores, style
from fairseq_posenc.analysis.results import score
from recipes.lib import divergence, records
from recipes.lib import seeds as seeds_of
from recipes.lib.encodings import parse
from recipes.lib.package import interval, write_whole
from recipes.lib.recipe import Row
from recipes.lib.report import heading
from recipes.lib.seeds import Seeds
from recipes.lib.significance import average, compare_with_first, summary

from .plan import SOURCE, TARGET

TEMPLATE = Path(__file__).with_name("template.md")
COST = {
    "added parameters": ("parameters", ",d"),
    "time per step relative to `none`": ("speed_ratio", ".2f"),
}
NOT_RECORDED = "unknown"  # value for stages that were run by hand
WIDTH = 120  # characters in a line of the report
PACKAGES = ("torch", "fairseq-fixed", "sacrebleu", "sentencepiece", "numpy")


def collect(output: Path, encodings: list[str], seeds: Seeds, unmeasured: bool = False) -> list[Row]:
    """Return one row of results per encoding, sorted from the highest to the lowest BLEU.

    The first of `encodings` is the baseline.
    """
    measured = {} if unmeasured else json.loads((output / "measured.json").read_text(encoding="utf-8"))
    rows = [row(output, name, seeds, measured.get(name)) for name in encodings]
    compare_with_first(rows, "bleu")
    return sorted(rows, key=lambda row: -1 if row["bleu"] is None else row["bleu"], reverse=True)


def row(output: Path, name: str, seeds: Seeds, measured: dict[str, float] | None) -> Row:
    """Return the row of an encoding, with the mean BLEU of the training runs that did not diverge.

    Args:
        output: Folder of the run, which contains the scores and the logs.
        name: Label of the encoding.
        seeds: Random seeds of the encoding's training runs.
        measured: Cost of the model that was trained with the first seed; None if it was not measured.
    """
    slugs = seeds.slugs(parse(name).slug)
    runs = divergence.runs(output, slugs)
    scores = [json.loads((output / "scores" / slug).read_text(encoding="utf-8")) for slug in runs.finished]
    cost = records.cost(output, *(f"{kind}:{slug}" for slug in slugs for kind in ("train", "generate")))
    return {
        "encoding": name,
        **summary("bleu", [score["bleu"] for score in scores]),
        "±": average([score["±"] for score in scores], 2),
        "diverged": runs.diverged,
        "signature": scores[0]["signature"] if scores else None,
        "parameters": measured and int(measured["parameters_added"]),
        "speed_ratio": measured and round(measured["training_time_ratio"], 3),
        "command": cost["command"],
        "commit": cost["commit"],
    }


def table(rows: list[Row]) -> str:
    """Return the table of results in Markdown."""
    columns = {
        "encoding": ("encoding", ""),
        "BLEU": ("bleu", ".1f"),
        "± 95 % interval": ("±", ".1f"),
        **({"sd": ("sd", ".1f"), "seeds": ("seeds", "d"), "p": ("p", ".2g")} if rows[0]["seeds"] > 1 else {}),
        **({"diverged": ("diverged", "")} if any(row["diverged"] for row in rows) else {}),
        **(COST if any(row["parameters"] is not None for row in rows) else {}),
    }
    rows = [{**row, "±": interval(row, "bleu")[0]} for row in rows]
    cells = [["–" if row[name] is None else f"{row[name]:{form}}" for name, form in columns.values()] for row in rows]
    align = ("left", *("right" for _ in list(columns)[1:]))
    return tabulate(cells, list(columns), tablefmt="pipe", disable_numparse=True, colalign=align)


def examples(raw: Path, count: int = 2) -> str:
    """Return the first test sentences with a relative clause, and their translations."""
    pairs = zip(_lines(raw / f"test.{SOURCE}"), _lines(raw / f"test.{TARGET}"), strict=True)
    chosen = [pair for pair in pairs if " that " in pair[0]][:count]
    return "\n".join(f"- {source}\n  → {target}" for source, target in chosen)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def meaning(rows: list[Row], least_gap: float) -> str:
    """Return a sentence that says whether the scores show that word order matters.

    Args:
        rows: Rows of the results, the highest BLEU first.
        least_gap: Number of BLEU points by which the best encoding must beat `none`; a negative number means that the
            run only tests the installation.
    """
    best = rows[0]
    none = next(row["bleu"] for row in rows if row["encoding"] == "none")
    if none is None:
        return "In this run, the training of the model without positions (`none`) diverged, so `none` has no score."
    if none > 0 and best["bleu"] - none >= least_gap >= 0:
        text = "A model without positions still translates the words (`none`: {:.1f} BLEU), but must guess who did what"
        return f"{text.format(none)} to whom."
    scores = f"`none` has {none:.1f} BLEU, and the best encoding, `{best['encoding']}`, has {best['bleu']:.1f} BLEU."
    scores = scores if best["bleu"] > none else f"no encoding has more than the {none:.1f} BLEU of `none`."
    if least_gap < 0:
        return f"This run only tests the installation: {scores} These scores say nothing about position encodings."
    return f"The scores of this run do not show clearly that word order matters: {scores}"


def write_markdown(output: Path, rows: list[Row], seeds: Seeds, least_gap: float) -> str:
    """Fill the results into the template of the report, and return the text."""
    counts = {split: len(_lines(output / "raw" / f"{split}.{SOURCE}")) for split in ("train", "valid", "test")}
    minutes = records.busy_minutes(output)
    return TEMPLATE.read_text(encoding="utf-8").format(
        heading=heading(seeds.seeds),
        table=table(rows),
        signature=rows[0]["signature"],
        sizes=", ".join(f"{count:,} {split}" for split, count in counts.items()),
        meaning="\n".join(wrap(meaning(rows, least_gap), WIDTH)),
        examples=examples(output / "raw"),
        seed=seeds.own,
        python=platform.python_version(),
        versions=", ".join(f"{name} {version(name)}" for name in PACKAGES),
        commit=", ".join(sorted({row["commit"] or NOT_RECORDED for row in rows})),
        minutes=NOT_RECORDED if minutes is None else f"{minutes:.1f}",
        commands="\n\n".join(row["command"] or NOT_RECORDED for row in rows),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder of the run to report.")
    parser.add_argument("--encodings", nargs="+", required=True, metavar="NAME", help="Encodings to report.")
    text = (
        "Minimum number of BLEU points by which the best encoding must beat `none` (negative: the run only tests the "
        "installation)."
    )
    parser.add_argument("--least-gap", type=float, required=True, metavar="X", help=text)
    text = "Leave the numbers of parameters and the training times out of the report."
    parser.add_argument("--unmeasured", action="store_true", help=text)
    seeds_of.add_options(parser)
    options = parser.parse_args()
    seeds = Seeds.from_arguments(options)
    rows = collect(options.output, options.encodings, seeds, options.unmeasured)
    scored = [row for row in rows if row["bleu"] is not None]
    items = [score({"recipe": "BLEU on the test set"}, row, "bleu")._replace(column="BLEU") for row in scored]
    style.save(scores.draw(items, baseline="none"), scores.rows(items), options.output, "bleu")
    write_whole(options.output / "results.md", write_markdown(options.output, rows, seeds, options.least_gap))
    write_whole(options.output / "results.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
