"""Score questions without a model: the first words of the answer's sentence, and the best constant question."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from fairseq_posenc import metrics
from recipes.lib.package import write_whole

from .data import items, units
from .score import scored

#: Length of the beginning of a sentence that serves as a question, by the unit of comparison.
FIRST = {"words": 10, "spaces": 10, "characters": 20}


def baselines(folder: Path, split: str) -> dict[str, dict[str, Any]]:
    """Return the scores of each baseline, keyed by its name. The constant is chosen on the training questions."""
    unit, split_items = units(folder), items(folder, split)
    count = FIRST[unit]
    constant = metrics.best_constant([item["question"] for item in items(folder, "train")], unit)
    first = [metrics.first_units(item["sentence"], count, unit) for item in split_items]
    kind = "characters" if unit == "characters" else "words"
    return {
        f"first {count} {kind} of the sentence": {"text": first[0], **scored(first, split_items, unit)},
        f"always {constant!r}": {"text": constant, **scored([constant] * len(split_items), split_items, unit)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="Output folder of prepare_questions.py."
    )
    parser.add_argument("--split", default="valid", metavar="NAME", help="Split to score (default: valid).")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    args = parser.parse_args()
    results = baselines(args.data, args.split)
    for name, facts in results.items():
        print(f"{name}: ROUGE-L {100 * facts['rouge_l']:.2f}", flush=True)
    write_whole(args.output, json.dumps(results, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
