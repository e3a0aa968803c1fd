"""sacreBLEU of what fairseq-generate wrote, detokenised, against the raw references."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from sacrebleu.metrics import BLEU

from recipes.lib.stages import write_atomically


def hypotheses(generated: str) -> list[str]:
    """The detokenised lines (`D-7<tab>score<tab>text`) in the order of the test set."""
    rows = [line.split("\t", 2) for line in generated.splitlines() if line.startswith("D-")]
    return [text for _, _, text in sorted(rows, key=lambda row: int(row[0][2:]))]


def score(generated: str, references: list[str]) -> dict[str, object]:
    found = hypotheses(generated)
    if len(found) != len(references):
        raise SystemExit(f"error: {len(found)} sentences were decoded, the test set has {len(references)}")
    bleu = BLEU()
    # Not rounded: the report does that.
    value = bleu.corpus_score(found, [references]).score
    return {"bleu": value, "signature": str(bleu.get_signature())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generated", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    facts = score(
        options.generated.read_text(encoding="utf-8"), options.reference.read_text(encoding="utf-8").splitlines()
    )
    write_atomically(options.output, json.dumps(facts))


if __name__ == "__main__":
    main()
