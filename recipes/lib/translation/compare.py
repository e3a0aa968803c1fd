"""comparison.json and bleu.png: what each encoding scores and costs, and whether it differs from the first."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sacrebleu.metrics import CHRF
from sacrebleu.significance import PairedTest

from recipes.lib.encodings import Encoding, parse_all
from recipes.lib.lines import read
from recipes.lib.recipe import Row
from recipes.lib.stages import write_atomically
from recipes.lib.translation.figure import draw
from recipes.lib.translation.score import bleu_of


def bootstrap(translations: dict[str, list[str]], references: list[str], language: str) -> dict[str, dict[str, Any]]:
    """sacrebleu's paired bootstrap of every system against the first: score, interval, p, signature of each metric."""
    metrics = {"BLEU": bleu_of(language), "chrF2": CHRF()}
    signatures, scores = PairedTest(list(translations.items()), metrics, [references], "bs")()
    return {
        name: {metric: {**vars(scores[metric][number]), "signature": str(signatures[metric])} for metric in metrics}
        for number, name in enumerate(translations)
    }


def row(encoding: Encoding, found: dict[str, Any], output: Path) -> Row:
    measured = json.loads((output / "measured.json").read_text(encoding="utf-8"))[encoding.label]
    bleu, chrf = found["BLEU"], found["chrF2"]
    return {
        "encoding": encoding.label,
        "BLEU": round(float(bleu["score"]), 2),
        "±": round(float(bleu["ci"]), 2),
        "p": _rounded(bleu["p_value"], 4),
        "chrF": round(float(chrf["score"]), 2),
        "p (chrF)": _rounded(chrf["p_value"], 4),
        "parameters": measured["parameters"],
        "words/s, training": _rounded(measured["training_words_per_second"]),
        "time of a step": _rounded(measured["training_time_ratio"], 2),
        "words/s, translation": _rounded(measured["translation_words_per_second"]),
        "time of translation": _rounded(measured["translation_time_ratio"], 2),
        "signature of BLEU": bleu["signature"],
        "signature of chrF": chrf["signature"],
        **marker(encoding, output),
    }


def _rounded(value: float | None, digits: int | None = None) -> float | None:
    return None if value is None else round(float(value), digits)


def marker(encoding: Encoding, output: Path) -> Row:
    """How it was trained."""
    facts = json.loads((output / ".stages" / f"train.{encoding.slug}.done").read_text(encoding="utf-8"))
    return {"command": facts["command"], "commit": facts["commit"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the recipe's folder")
    parser.add_argument("--language", required=True, help="of the target")
    parser.add_argument("--pos-enc", action="append", required=True, help="the first is compared with")
    asked = parser.parse_args()
    encodings = parse_all(asked.pos_enc)
    files = {one.label: asked.output / "translations" / f"{one.slug}.{asked.language}" for one in encodings}
    translations = {label: list(read(path)) for label, path in files.items()}
    found = bootstrap(translations, list(read(asked.output / "raw" / f"test.{asked.language}")), asked.language)
    rows = [row(one, found[one.label], asked.output) for one in encodings]
    bleu = {label: float(facts["BLEU"]["score"]) for label, facts in found.items()}
    within = {label: float(facts["BLEU"]["ci"]) for label, facts in found.items()}
    first = encodings[0].label
    draw(bleu, first, f"sacreBLEU, 95 % intervals (dashed: {first})", asked.output / "bleu.png", within)
    write_atomically(asked.output / "comparison.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
