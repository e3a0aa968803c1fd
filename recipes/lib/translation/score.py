"""sacreBLEU and chrF of what fairseq-generate wrote, detokenised, against the raw references."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from sacrebleu.metrics import BLEU, CHRF

from recipes.lib.stages import write_atomically
from recipes.lib.translation.lines import read


def hypotheses(generated: Path) -> list[str]:
    """The detokenised lines (`D-7<tab>score<tab>text`) in the order of the test set."""
    rows = [line.split("\t", 2) for line in read(generated) if line.startswith("D-")]
    return [text for _, _, text in sorted(rows, key=lambda row: int(row[0][2:]))]


def score(found: list[str], references: list[str], language: str = "") -> dict[str, object]:
    """`language` is the target's: sacrebleu has tokenisers of their own for zh, ja and ko."""
    if len(found) != len(references):
        raise SystemExit(f"error: {len(found)} sentences were decoded, the test set has {len(references)}")
    bleu, chrf = BLEU(trg_lang=language), CHRF()
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
