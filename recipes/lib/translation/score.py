"""sacreBLEU and chrF of what fairseq-generate wrote, detokenised, against the raw references."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from recipes.lib.lines import read
from recipes.lib.package import write_whole

THREE_LETTERS = {"zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "kor": "ko"}


def hypotheses(generated: Path) -> dict[int, str]:
    """The detokenised lines (`D-7<tab>score<tab>text`) by their number, in the order of the test set."""
    rows = [line.split("\t", 2) for line in read(generated) if line.startswith("D-")]
    return dict(sorted((int(name[2:]), text) for name, _, text in rows))


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


def score(found: dict[int, str], references: list[str], language: str = "", may_refuse: bool = False) -> dict[str, Any]:
    """No score where sentences are missing; they are named, as `refused`. `language` is the target's.

    Raises:
        SystemExit: sentences are missing, and may not be.
    """
    missing = sorted(set(range(len(references))) - found.keys())
    if len(found) != len(references) and not (may_refuse and len(found) + len(missing) == len(references)):
        raise SystemExit(f"error: {len(found)} sentences were decoded, the test set has {len(references)}")
    bleu, chrf = bleu_of(language), CHRF()
    lines, whole = list(found.values()), not missing
    # Not rounded: the report does that.
    return {
        "bleu": bleu.corpus_score(lines, [references]).score if whole else None,
        "signature": str(bleu.get_signature()) if whole else None,
        "chrf": chrf.corpus_score(lines, [references]).score if whole else None,
        "chrf_signature": str(chrf.get_signature()) if whole else None,
        **({"refused": missing} if missing else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generated", type=Path, required=True, help="what fairseq-generate wrote")
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--language", default="", help="of the reference")
    parser.add_argument("--translation", type=Path, help="where the translation goes as plain lines")
    parser.add_argument("--may-refuse", action="store_true", help="sentences may be missing: their lines are empty")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    found, references = hypotheses(asked.generated), list(read(asked.reference))
    facts = score(found, references, asked.language, asked.may_refuse)
    if asked.translation:
        lines = (found.get(number, "") for number in range(len(references)))
        write_whole(asked.translation, "".join(line + "\n" for line in lines))
    write_whole(asked.output, json.dumps(facts))


if __name__ == "__main__":
    main()
