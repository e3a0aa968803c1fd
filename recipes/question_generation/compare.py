"""Write comparison.json, curves.png and gallery.md: scores of models, baselines and the paper, and training costs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recipes.lib import divergence
from recipes.lib import seeds as seeds_of
from recipes.lib.checkpoints import updates
from recipes.lib.curves import draw, figures, read
from recipes.lib.encodings import Encoding, add_option, parse, published
from recipes.lib.lines import read as read_lines
from recipes.lib.logs import training_log
from recipes.lib.package import figures as printed
from recipes.lib.package import read_parameters, write_whole
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.seeds import Seeds
from recipes.lib.significance import average, compare_with_first, summary
from recipes.lib.stages import read_json

from .data import items
from .settings import CMRC, RECORD, SQUAD, Variant
from .sources import FETCHED, PUBLISHED

SHOWN = 20  # number of sources in the gallery
ROUGE, COPIED = "valid_rouge_l", "valid_copied"
#: Names of the data sets in the paper's tables.
COLUMNS = {SQUAD: "SQuAD", CMRC: "CMRC"}


def dataset(record: dict[str, Any], scored: str) -> str | None:
    """Return SQuAD or CMRC if a run has the paper's data, otherwise None.

    A part of a published file does not count as the paper's data, and neither does a test set used for training.

    Args:
        record: Record of the prepared folder, with the names of its files and the number of questions in each split.
        scored: Split that was scored. The paper scores the development set.
    """
    if scored != "valid":
        return None
    numbers = {split: facts["given"] for split, facts in record["splits"].items()}
    names = {split: file["name"].removesuffix(".gz") for split, file in record["files"].items()}
    for name, published_files in FETCHED.items():
        published_names = {split: path.rpartition("/")[2] for split, path in published_files.items()}
        if PUBLISHED[name].items() <= numbers.items() and names.items() <= published_names.items():
            return name
    return None


def paper(encoding: Encoding, name: str | None) -> float | None:
    """Return the ROUGE-L that the paper reports for an encoding on a data set, or None."""
    return published(printed("LFHC", column=COLUMNS[name]), encoding) if name in COLUMNS else None


def common(label: str, scores: Sequence[dict[str, Any]]) -> Row:
    """Return the columns that models and baselines share, as means over the scores of several seeds."""
    first = scores[0] if scores else {}
    return {
        "model": label,
        **summary("ROUGE-L", [100 * score["rouge_l"] for score in scores]),
        "beta 1.2": average([100 * score["rouge_l_coco"] for score in scores], 2),
        "BLEU-4": average([score["bleu"] for score in scores], 2),
        "chrF": average([score["chrf"] for score in scores], 2),
        "distinct": average([score["distinct"] for score in scores], 3),
        "signature of BLEU": first.get("bleu_signature"),
        "signature of chrF": first.get("chrf_signature"),
        "sources": first.get("sources"),
        "items": first.get("items"),
        "units": first.get("units"),
    }


def row(variant: Variant, seeds: Seeds, output: Path, baselines: dict[str, dict[str, Any]], name: str | None) -> Row:
    """Return the row of a model: means over the training runs that did not diverge.

    Args:
        variant: Encoding of the model, and whether the model can copy words.
        seeds: Seeds of the model's training runs.
        output: Folder of the run.
        baselines: Scores of the baselines.
        name: Name of the published data set, or None for other data sets.
    """
    slugs = seeds.slugs(variant.slug)
    runs = divergence.runs(output, slugs)
    scores = [read_json(output / "scores" / f"{slug}.json") for slug in runs.finished]
    logs = {slug: training_log(output, slug) for slug in runs.finished}
    rouge = [points for log in logs.values() if (points := figures(log, ROUGE))]
    # The best checkpoints are scored.
    best = {slug: updates(output / "checkpoints" / slug / "checkpoint_best.pt") for slug in runs.finished}
    gates = [dict(figures(log, COPIED)).get(best[slug]) for slug, log in logs.items()]
    curves = [read(training_log(output, slug)) for slug in slugs]
    means = common(variant.label, scores)
    return {
        **means,
        **({"paper": paper(variant.encoding, name) if variant.copy else None} if name else {}),
        "beats baselines": bool(scores) and beaten(means["ROUGE-L"], baselines),
        "first ROUGE-L": average([100 * points[0][1] for points in rouge], 2),  # on greedy questions in validation
        "last ROUGE-L": average([100 * points[-1][1] for points in rouge], 2),
        "copy gate": average([gate for gate in gates if gate is not None], 3),
        "unknown words copied": average([score["unknown words copied"] for score in scores], 4),
        "unknown words left": average([score["unknown words left"] for score in scores], 4),
        "diverged": runs.diverged,
        "checkpoint": next(iter(runs.finished), None),
        "best update": average([*best.values()]),
        "updates": curves[0].train[-1][0] if curves[0].train else None,
        "parameters": read_parameters(training_log(output, next(iter(slugs)))),
        **cost(output, *(f"train:{slug}" for slug in slugs)),
        "tokens/s": average([curve.speed for curve in curves if curve.speed]),
    }


def beaten(rouge: float, baselines: Mapping[str, dict[str, Any]]) -> bool:
    """Return whether a ROUGE-L in percent is higher than that of every baseline."""
    return all(rouge > round(100 * baseline["rouge_l"], 2) for baseline in baselines.values())


def compare(variants: list[Variant], seeds: Seeds, output: Path, data: Path, split: str) -> list[Row]:
    """Return the rows of the models, then the rows of the baselines with the same columns."""
    baselines, published_name = read_json(output / "baselines.json"), dataset(read_json(data / RECORD), split)
    rows = [row(variant, seeds, output, baselines, published_name) for variant in variants]
    compare_with_first(rows, "ROUGE-L")
    without_seeds = {"sd": None, "seeds": None, "ROUGE-L of seeds": None}
    same = dict.fromkeys(rows[0])
    return rows + [{**same, **common(name, [score]), **without_seeds} for name, score in baselines.items()]


def curves(variants: list[Variant], seeds: Seeds, output: Path, split: str) -> None:
    """Draw the validation ROUGE-L of each model, or the loss if a log has no ROUGE-L.

    A horizontal line shows the better of the two baselines, if `split` is the validation set.
    """
    logs = {
        seeds.label(variant.label, seed): training_log(output, slug)
        for variant in variants
        for slug, seed in seeds.slugs(variant.slug).items()
    }
    rouge = {label: [(update, 100 * value) for update, value in figures(log, ROUGE)] for label, log in logs.items()}
    if all(rouge.values()):
        best = max(100 * score["rouge_l"] for score in read_json(output / "baselines.json").values())
        floor = ("better baseline", best) if split == "valid" else None
        draw(rouge, "validation ROUGE-L of greedy questions", output / "curves.png", floor=floor)
    else:
        losses = {label: read(log) for label, log in logs.items()}
        points = {label: curve.valid or curve.train for label, curve in losses.items()}
        draw(points, "loss in bits per piece", output / "curves.png")


def gallery(items: list[dict[str, Any]], questions: Mapping[str, list[str]]) -> str:
    """Return Markdown that shows each model's question for some sentences, with the answer and the references.

    The sentences are taken from the split at equal intervals.

    Args:
        items: Items of surface.jsonl.
        questions: Generated questions of each model, one for each item.
    """
    first = list({item["source"]: number for number, item in reversed(list(enumerate(items)))}.values())
    first.sort()
    chosen = [first[k * len(first) // min(SHOWN, len(first))] for k in range(min(SHOWN, len(first)))]
    parts = [
        "# Generated questions",
        "These examples are taken from the split at equal intervals, regardless of their scores.",
    ]
    for number in chosen:
        item = items[number]
        lines = [f"**{_one_line(item['sentence'])}**"]
        lines += [f"- answer: {_one_line(item['answer'])}"] if "answer" in item else []
        lines += [f"- reference: {_one_line(text)}" for text in item["references"]]
        lines += [f"- {name}: {_one_line(texts[number])}" for name, texts in questions.items()]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="Output folder of prepare_questions.py."
    )
    parser.add_argument("--split", required=True, metavar="NAME", help="Split that was scored.")
    parser.add_argument("--copy", choices=("on", "off", "both"), required=True, help="Whether models can copy words.")
    add_option(parser, "compare with the first one")
    seeds_of.add_options(parser)
    args = parser.parse_args()
    seeds = Seeds.from_arguments(args)
    copies = {"on": [True], "off": [False], "both": [True, False]}[args.copy]
    variants = [Variant(parse(label), copy) for label in args.pos_enc for copy in copies]
    rows = compare(variants, seeds, args.output, args.data, args.split)
    curves(variants, seeds, args.output, args.split)
    first = {row["model"]: row.get("checkpoint") for row in rows}
    questions = {
        label: list(read_lines(args.output / "questions" / f"{slug}.txt")) for label, slug in first.items() if slug
    }
    write_whole(args.output / "gallery.md", gallery(items(args.data, args.split), questions))
    write_whole(args.output / "comparison.json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
