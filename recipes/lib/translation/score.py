"""Compute BLEU and chrF of fairseq-generate's detokenised output with sacrebleu, against the raw references."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from recipes.lib.lines import read
from recipes.lib.package import write_whole

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


def with_interval(metric: BLEU, translations: list[str], references: list[str]) -> tuple[float, float | None]:
    """Return the BLEU, and half the width of its 95 % bootstrap interval over the sentences (None for one sentence)."""
    score = metric.corpus_score(translations, [references], n_bootstrap=SAMPLES)
    return score.score, score._ci if len(translations) > 1 else None  # sacrebleu prints it, but gives it no other name


def tokenizer(language: str) -> str:
    """Return the name of BLEU's tokenizer for a language, as in sacrebleu's signature."""
    return str(bleu_of(language).tokenizer.signature())


def score(
    translations: dict[int, str], references: list[str], language: str = "", may_refuse: bool = False
) -> dict[str, Any]:
    """Return BLEU and chrF without rounding; `±` is half the width of BLEU's 95 % interval over the sentences.

    If translations are missing, the scores are None and `refused` lists the sentences.

    Args:
        translations: Detokenised translations, keyed by sentence number.
        references: Raw references, one for each sentence.
        language: Target language.
        may_refuse: Whether translations may be missing, because the model refused long sentences.
    Raises:
        SystemExit: Translations are missing although `may_refuse` is false.
    """
    missing = sorted(set(range(len(references))) - translations.keys())
    count = len(translations)
    if count != len(references) and not (may_refuse and count + len(missing) == len(references)):
        raise SystemExit(
            f"error: {count} sentences were translated, but the test set has {len(references)}. Translate the whole "
            "test set again."
        )
    bleu, chrf = bleu_of(language), CHRF()
    lines, whole = list(translations.values()), not missing
    score, within = with_interval(bleu, lines, references) if whole else (None, None)
    return {
        "bleu": score,
        "±": within,
        "signature": str(bleu.get_signature()) if whole else None,
        "chrf": chrf.corpus_score(lines, [references]).score if whole else None,
        "chrf_signature": str(chrf.get_signature()) if whole else None,
        **({"refused": missing} if missing else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    option("--generated", type=Path, required=True, metavar="FILE", help="Output of fairseq-generate.")
    option("--reference", type=Path, required=True, metavar="FILE", help="Raw references, one sentence per line.")
    option("--language", default="", metavar="NAME", help="Language code of the references.")
    option("--translation", type=Path, metavar="FILE", help="File for the translations, one per line.")
    text = "Accept missing translations; their lines are empty and no score is computed."
    option("--may-refuse", action="store_true", help=text)
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the scores.")
    arguments = parser.parse_args()
    translations, references = hypotheses(arguments.generated), list(read(arguments.reference))
    facts = score(translations, references, arguments.language, arguments.may_refuse)
    if arguments.translation:
        lines = (translations.get(number, "") for number in range(len(references)))
        write_whole(arguments.translation, "".join(line + "\n" for line in lines))
    write_whole(arguments.output, json.dumps(facts))


if __name__ == "__main__":
    main()
