"""Compute BLEU and chrF of fairseq-generate's detokenised output with sacrebleu, against the raw references.

A model with a table of positions refuses sentences that are longer than the table; it has no BLEU for sets with such
sentences, and `refused` counts them. With --bounds, the scores include BLEU by the length of the source in words.
"""

import argparse
import json
from collections.abc import Mapping
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


def bleu(metric: BLEU, translations: Mapping[int, str], references: Mapping[int, str], of: str = "") -> dict[str, Any]:
    """Return BLEU, and as `±` half the width of its 95 % bootstrap interval over the sentences.

    If translations are missing, only their number is returned, as `refused`. All keys end in `of`.
    """
    if missing := len(references.keys() - translations.keys()):
        return {f"refused{of}": missing}
    lines = [translations[number] for number in references]
    score = metric.corpus_score(lines, [list(references.values())], n_bootstrap=SAMPLES)
    within = {f"±{of}": score._ci} if len(lines) > 1 else {}  # sacrebleu prints it, but gives it no other name
    return {f"BLEU{of}": score.score, **within}


def by_length(sources: Mapping[int, str], bounds: str) -> dict[str, list[int]]:
    """Return the numbers of the sentences in groups of source lengths with these upper bounds, such as `1-12`."""
    groups = {}
    for low, high in pairwise([0, *sorted(map(int, bounds.split(","))), inf]) if bounds else ():
        numbers = [number for number, source in sources.items() if low < len(source.split()) <= high]
        groups[f"{low + 1}+" if high == inf else f"{low + 1}-{high}"] = numbers
    return {name: numbers for name, numbers in groups.items() if numbers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--generated", type=Path, required=True, metavar="FILE", help="Output of fairseq-generate.")
    option("--text", type=Path, required=True, metavar="DIR", help="Folder with the raw test set.")
    option("--languages", nargs=2, required=True, metavar="NAME", help="Codes of the source and the target language.")
    option("--bounds", default="", metavar="N,...", help="Upper bounds of the groups of source lengths, in words.")
    option("--translation", type=Path, required=True, metavar="FILE", help="File for the translations, one per line.")
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the scores.")
    options = parser.parse_args()
    sources, references = (dict(enumerate(read(options.text / f"test.{language}"))) for language in options.languages)
    translations = hypotheses(options.generated)
    if len(translations) > len(references):
        problem = f"{len(translations)} sentences were translated, but the test set has {len(references)}"
        raise SystemExit(f"error: {options.generated}: {problem}. Translate the test set again.")
    metric, chrf = bleu_of(options.languages[1]), CHRF()
    scores = bleu(metric, translations, references)
    if "BLEU" in scores:
        scores["BLEU's signature"] = str(metric.get_signature())
        scores["chrF"] = chrf.corpus_score(list(translations.values()), [list(references.values())]).score
        scores["chrF's signature"] = str(chrf.get_signature())
    for name, numbers in by_length(sources, options.bounds).items():
        scores |= bleu(metric, translations, {number: references[number] for number in numbers}, f" of {name} words")
    lines = "".join(translations.get(number, "") + "\n" for number in references)
    write_all_whole({options.translation: lines, options.output: json.dumps(scores, indent=1, ensure_ascii=False)})


if __name__ == "__main__":
    main()
