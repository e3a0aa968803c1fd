"""Compute BLEU and chrF of fairseq-generate's detokenised output with sacrebleu, against the raw references.

A model with a table of positions refuses sentences that are longer than the table; it has no BLEU for sets with such
sentences, and `refused` counts them. With --bounds, the scores include BLEU by the length of the source in words.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from fairseq_posenc.core.writing import write_all_whole
from recipes.lib.lines import read

SAMPLES = 1000  # bootstrap samples, as in sacrebleu's own commands
THREE_LETTERS = {"zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "kor": "ko"}


def hypotheses(generated: Path) -> dict[int, str]:
    """Return the texts of the detokenised lines (`D-7<tab>score<tab>text`), keyed and ordered by sentence number."""
    rows = [line.split("\t", 2) for line in read(generated) if line.startswith("D-")]
    return dict(sorted((int(name[2:]), text) for name, _, text in rows))


def bleu_of(language: str) -> BLEU:
    """Return sacrebleu's BLEU metric for a target language, with the special tokenizer that some languages have.

    Raises:
        SystemExit: The tokenizer is not installed.
    """
    main = language.replace("-", "_").split("_")[0].lower()
    try:
        return BLEU(trg_lang=THREE_LETTERS.get(main, main))
    except RuntimeError as error:
        raise SystemExit(f"error: BLEU cannot be computed for {language}: {' '.join(str(error).split())}") from None


def tokenizer(language: str) -> str:
    """Return the name of BLEU's tokenizer for a language, as in sacrebleu's signature."""
    return str(bleu_of(language).tokenizer.signature())


def bleu(metric: BLEU, translations: Mapping[int, str], references: Mapping[int, str], name: str) -> dict[str, Any]:
    """Return BLEU as `name`, and as `name ±` half the width of its 95 % bootstrap interval over the sentences.

    If translations are missing, only their number is returned, as `name refused`.
    """
    if missing := len(references.keys() - translations.keys()):
        return {f"{name} refused": missing}
    lines = [translations[number] for number in references]
    score = metric.corpus_score(lines, [list(references.values())], n_bootstrap=SAMPLES)
    within = {f"{name} ±": score._ci} if len(lines) > 1 else {}  # sacrebleu prints it, but gives it no other name
    return {name: score.score, **within}


def by_length(sources: Sequence[str], bounds: Sequence[int]) -> dict[str, list[int]]:
    """Return the numbers of the sentences in groups of source lengths with these upper bounds, such as `1-12`."""
    groups = {}
    for low, high in pairwise([0, *sorted(set(bounds)), inf]):
        numbers = [number for number, source in enumerate(sources) if low < len(source.split()) <= high]
        groups[f"{low + 1}+" if high == inf else f"{low + 1}-{high}"] = numbers
    return {name: numbers for name, numbers in groups.items() if numbers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--generated", type=Path, required=True, metavar="FILE", help="Output of fairseq-generate.")
    option("--source", type=Path, required=True, metavar="FILE", help="Raw sources, one sentence per line.")
    option("--reference", type=Path, required=True, metavar="FILE", help="Raw references, one sentence per line.")
    option("--language", default="", metavar="NAME", help="Language code of the references.")
    option("--bounds", default="", metavar="N,...", help="Upper bounds of the groups of source lengths, in words.")
    option("--may-refuse", action="store_true", help="Accept missing translations; their lines are empty.")
    option("--translation", type=Path, required=True, metavar="FILE", help="File for the translations, one per line.")
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the scores.")
    options = parser.parse_args()
    translations, references = hypotheses(options.generated), dict(enumerate(read(options.reference)))
    missing, extra = references.keys() - translations.keys(), translations.keys() - references.keys()
    if extra or (missing and not options.may_refuse):
        problem = f"{len(translations)} sentences were translated, but the test set has {len(references)}"
        raise SystemExit(f"error: {options.generated}: {problem}. Translate the whole test set again.")
    metric, bounds = bleu_of(options.language), [int(bound) for bound in options.bounds.split(",") if bound]
    scores = bleu(metric, translations, references, "bleu")
    if not missing:
        scores["signature"] = str(metric.get_signature())
        chrf = CHRF()
        scores["chrf"] = chrf.corpus_score(list(translations.values()), [list(references.values())]).score
        scores["chrf signature"] = str(chrf.get_signature())
    for name, numbers in by_length(list(read(options.source)), bounds).items() if bounds else ():
        group = {number: references[number] for number in numbers}
        scores |= bleu(metric, translations, group, f"bleu of {name} words")
    lines = "".join(translations.get(number, "") + "\n" for number in references)
    write_all_whole({options.translation: lines, options.output: json.dumps(scores)})


if __name__ == "__main__":
    main()
