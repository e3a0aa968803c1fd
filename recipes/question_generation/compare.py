"""Write comparison.json, curves.png and gallery.md: scores of models, baselines and the paper, and training costs."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recipes.lib.checkpoints import updates
from recipes.lib.curves import draw, figures, read
from recipes.lib.encodings import Encoding, parse, published
from recipes.lib.lines import read as read_lines
from recipes.lib.package import figures as printed
from recipes.lib.package import write_whole
from recipes.lib.recipe import Row
from recipes.lib.records import cost
from recipes.lib.stages import read_json

from .data import items
from .settings import CMRC, RECORD, SQUAD, Variant

SHOWN = 20  # number of sources in the gallery
ROUGE, COPIED = "valid_rouge_l", "valid_copied"
#: Names of the data sets in the paper's tables.
COLUMNS = {SQUAD: "SQuAD", CMRC: "CMRC"}
#: Patterns for their file names, such as train-v1.1.json, dev-v2.0.json, cmrc2018_dev.json, dev-v1.1.part1.json.gz.
FILES = {SQUAD: re.compile(r".+-v(1\.1|2\.0)(\.\w+)*\.json(\.gz)?"), CMRC: re.compile(r"cmrc2018_\w+\.json(\.gz)?")}


def dataset(record: dict[str, Any]) -> str | None:
    """Return SQuAD or CMRC, judged by the file names in the record of a prepared folder; None for other data sets."""
    names = [file["name"] for file in record["files"].values()]
    return next((name for name, form in FILES.items() if all(map(form.fullmatch, names))), None)


def paper(encoding: Encoding, name: str | None) -> float | None:
    """Return the ROUGE-L that the paper reports for an encoding on a data set, or None if it does not report it."""
    return published(printed("LFHC", column=COLUMNS[name]), encoding) if name in COLUMNS else None


def common(label: str, score: dict[str, Any]) -> Row:
    """Return the columns that models and baselines share."""
    return {
        "model": label,
        "ROUGE-L": round(100 * score["rouge_l"], 2),
        "beta 1.2": round(100 * score["rouge_l_coco"], 2),
        "BLEU-4": round(score["bleu"], 2),
        "chrF": round(score["chrf"], 2),
        "distinct": round(score["distinct"], 3),
        "signature of BLEU": score["bleu_signature"],
        "signature of chrF": score["chrf_signature"],
        "sources": score["sources"],
        "items": score["items"],
        "units": score["units"],
    }


def row(variant: Variant, output: Path, baselines: dict[str, dict[str, Any]], name: str | None) -> Row:
    """Return the row of a model; `name` is the name of the data set if it is a published one, otherwise None."""
    score = read_json(output / "scores" / f"{variant.slug}.json")
    log = output / "logs" / f"{variant.slug}.train.log"
    rouge, gate, curve = figures(log, ROUGE), figures(log, COPIED), read(log)
    best = updates(output / "checkpoints" / variant.slug / "checkpoint_best.pt")  # the checkpoint that was scored
    best_gate = dict(gate).get(best)
    return {
        **common(variant.label, score),
        **({"paper": paper(variant.encoding, name) if variant.copy else None} if name else {}),
        "beats baselines": all(score["rouge_l"] > baseline["rouge_l"] for baseline in baselines.values()),
        "first ROUGE-L": round(100 * rouge[0][1], 2) if rouge else None,  # on greedy questions in validation
        "last ROUGE-L": round(100 * rouge[-1][1], 2) if rouge else None,
        "copy gate": None if best_gate is None else round(best_gate, 3),
        "unknown words copied": round(score["unknown words copied"], 4),
        "unknown words left": round(score["unknown words left"], 4),
        "best update": best,
        "updates": curve.train[-1][0] if curve.train else None,
        **cost(output, f"train:{variant.slug}"),
        "tokens/s": curve.speed and round(curve.speed),
    }


def compare(variants: list[Variant], output: Path, data: Path, split: str) -> list[Row]:
    """Return the rows of the models, then the rows of the baselines with the same columns."""
    baselines, published_name = read_json(output / "baselines.json"), dataset(read_json(data / RECORD))
    rows = [row(variant, output, baselines, published_name) for variant in variants]
    return rows + [{**dict.fromkeys(rows[0]), **common(name, score)} for name, score in baselines.items()]


def curves(variants: list[Variant], output: Path, split: str) -> None:
    """Draw the validation ROUGE-L of each model, or the loss if a log has no ROUGE-L.

    A horizontal line shows the better baseline, if it was scored on the validation set.
    """
    logs = {variant.label: output / "logs" / f"{variant.slug}.train.log" for variant in variants}
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
    """Return Markdown with the sentence, the answer, the references and the question of each model for some sources.

    The sources are taken from the split at equal intervals.

    Args:
        items: Items of surface.jsonl.
        questions: Generated questions by model, one for each item.
    """
    first = list({item["source"]: number for number, item in reversed(list(enumerate(items)))}.values())
    first.sort()
    chosen = [first[k * len(first) // min(SHOWN, len(first))] for k in range(min(SHOWN, len(first)))]
    parts = ["# Generated questions", "The sources are taken from the split at equal intervals, not by their scores."]
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
    parser.add_argument("--pos-enc", action="append", required=True, metavar="NAME", help="Encoding (repeatable).")
    args = parser.parse_args()
    copies = {"on": [True], "off": [False], "both": [True, False]}[args.copy]
    variants = [Variant(parse(label), copy) for label in args.pos_enc for copy in copies]
    rows = compare(variants, args.output, args.data, args.split)
    curves(variants, args.output, args.split)
    questions = {model.label: list(read_lines(args.output / "questions" / f"{model.slug}.txt")) for model in variants}
    write_whole(args.output / "gallery.md", gallery(items(args.data, args.split), questions))
    write_whole(args.output / "comparison.json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
