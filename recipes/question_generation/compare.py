"""Write comparison.json, curves.png and gallery.md: scores of models, baselines and the paper, and training costs."""

from __future__ import annotations

import argparse
import json
import re
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
from .gallery import gallery
from .settings import CMRC, RECORD, SQUAD, Variant

ROUGE, COPIED = "valid_rouge_l", "valid_copied"
#: The names of the datasets in the paper's tables.
COLUMNS = {SQUAD: "SQuAD", CMRC: "CMRC"}
#: Patterns of their file names, such as train-v1.1.json, dev-v2.0.json, cmrc2018_dev.json and dev-v1.1.part1.json.gz.
FILES = {SQUAD: re.compile(r".+-v(1\.1|2\.0)(\.\w+)*\.json(\.gz)?"), CMRC: re.compile(r"cmrc2018_\w+\.json(\.gz)?")}


def dataset(record: dict[str, Any]) -> str | None:
    """Return SQuAD or CMRC, judged by the file names in the record of a prepared folder; None for other datasets."""
    names = [file["name"] for file in record["files"].values()]
    return next((name for name, form in FILES.items() if all(map(form.fullmatch, names))), None)


def paper(encoding: Encoding, of: str | None) -> float | None:
    """Return the ROUGE-L that the paper reports for an encoding on a dataset; None if it reports none."""
    return published(printed("LFHC", column=COLUMNS[of]), encoding) if of in COLUMNS else None


def common(label: str, score: dict[str, Any]) -> Row:
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


def row(variant: Variant, output: Path, baselines: dict[str, dict[str, Any]], known: str | None) -> Row:
    score = read_json(output / "scores" / f"{variant.slug}.json")
    log = output / "logs" / f"{variant.slug}.train.log"
    rouge, gate, curve = figures(log, ROUGE), figures(log, COPIED), read(log)
    best = updates(output / "checkpoints" / variant.slug / "checkpoint_best.pt")  # the checkpoint that was scored
    open_then = dict(gate).get(best)
    return {
        **common(variant.label, score),
        **({"paper": paper(variant.encoding, known) if variant.copy else None} if known else {}),
        "beats baselines": all(score["rouge_l"] > one["rouge_l"] for one in baselines.values()),
        "first ROUGE-L": round(100 * rouge[0][1], 2) if rouge else None,  # on greedy questions in validation
        "last ROUGE-L": round(100 * rouge[-1][1], 2) if rouge else None,
        "copy gate": None if open_then is None else round(open_then, 3),
        "unknown words copied": round(score["unknown words copied"], 4),
        "unknown words left": round(score["unknown words left"], 4),
        "best update": best,
        "updates": curve.train[-1][0] if curve.train else None,
        **cost(output, f"train:{variant.slug}"),
        "tokens/s": curve.speed and round(curve.speed),
    }


def compare(variants: list[Variant], output: Path, data: Path, split: str) -> list[Row]:
    """Return the rows of the models, then those of the baselines with the same columns."""
    baselines, known = read_json(output / "baselines.json"), dataset(read_json(data / RECORD))
    rows = [row(variant, output, baselines, known) for variant in variants]
    return rows + [{**dict.fromkeys(rows[0]), **common(name, one)} for name, one in baselines.items()]


def curves(variants: list[Variant], output: Path, split: str) -> None:
    """Draw the ROUGE-L in validation of each model, or the loss if a log has no ROUGE-L.

    The better baseline is a horizontal line if it was scored on the validation set.
    """
    logs = {variant.label: output / "logs" / f"{variant.slug}.train.log" for variant in variants}
    rouge = {label: [(update, 100 * value) for update, value in figures(log, ROUGE)] for label, log in logs.items()}
    if all(rouge.values()):
        best = max(100 * one["rouge_l"] for one in read_json(output / "baselines.json").values())
        floor = ("better baseline", best) if split == "valid" else None
        draw(rouge, "ROUGE-L of greedy questions, validation", output / "curves.png", floor=floor)
    else:
        losses = {label: read(log) for label, log in logs.items()}
        points = {label: one.valid or one.train for label, one in losses.items()}
        draw(points, "loss, bits a piece", output / "curves.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the recipe's folder")
    parser.add_argument("--data", type=Path, required=True, help="what prepare_questions.py made")
    parser.add_argument("--split", required=True)
    parser.add_argument("--copy", choices=("on", "off", "both"), required=True)
    parser.add_argument("--pos-enc", action="append", required=True)
    asked = parser.parse_args()
    copies = {"on": [True], "off": [False], "both": [True, False]}[asked.copy]
    variants = [Variant(parse(label), copy) for label in asked.pos_enc for copy in copies]
    found = compare(variants, asked.output, asked.data, asked.split)
    curves(variants, asked.output, asked.split)
    questions = {one.label: list(read_lines(asked.output / "questions" / f"{one.slug}.txt")) for one in variants}
    write_whole(asked.output / "gallery.md", gallery(items(asked.data, asked.split), questions))
    write_whole(asked.output / "comparison.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
