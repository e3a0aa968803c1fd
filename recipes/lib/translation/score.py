"""sacreBLEU and chrF of what fairseq-generate wrote, detokenised, against the raw references."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from recipes.lib.lines import read
from recipes.lib.stages import write_atomically

THREE_LETTERS = {"zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "kor": "ko"}


def hypotheses(generated: Path) -> list[str]:
    """The detokenised lines (`D-7<tab>score<tab>text`) in the order of the test set."""
    rows = [line.split("\t", 2) for line in read(generated) if line.startswith("D-")]
    return [text for _, _, text in sorted(rows, key=lambda row: int(row[0][2:]))]


def bleu_of(language: str) -> BLEU:
    """sacrebleu has tokenisers of their own for Chinese, Japanese and Korean.

    Raises:
        SystemExit: one that is not installed.
    """
    main = language.replace("-", "_").split("_")[0].lower()
    try:
        return BLEU(trg_lang=THREE_LETTERS.get(main, main))
    except RuntimeError as error:
        raise SystemExit(f"error: BLEU of {language}: {' '.join(str(error).split())}") from None


def tokenizer(language: str) -> str:
    """The one that BLEU uses, as its signature names it."""
    return str(bleu_of(language).tokenizer.signature())


def score(found: list[str], references: list[str], language: str = "") -> dict[str, object]:
    """`language` is the target's."""
    if len(found) != len(references):
        raise SystemExit(f"error: {len(found)} sentences were decoded, the test set has {len(references)}")
    bleu, chrf = bleu_of(language), CHRF()
    # Not rounded: the report does that.
    return {
        "bleu": bleu.corpus_score(found, [references]).score,
        "signature": str(bleu.get_signature()),
        "chrf": chrf.corpus_score(found, [references]).score,
        "chrf_signature": str(chrf.get_signature()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generated", type=Path, required=True, help="what fairseq-generate wrote")
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--language", default="", help="of the reference")
    parser.add_argument("--translation", type=Path, help="where the translation goes as plain lines")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    found = hypotheses(asked.generated)
    facts = score(found, list(read(asked.reference)), asked.language)
    if asked.translation:
        write_atomically(asked.translation, "".join(line + "\n" for line in found))
    write_atomically(asked.output, json.dumps(facts))


if __name__ == "__main__":
    main()
