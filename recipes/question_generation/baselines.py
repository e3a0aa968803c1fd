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
    """Return the text and the scores of each baseline by name. The constant is chosen on the training questions."""
    how, given = units(folder), items(folder, split)
    count = FIRST[how]
    constant = metrics.best_constant([one["question"] for one in items(folder, "train")], how)
    first = [metrics.first_units(one["sentence"], count, how) for one in given]
    kind = "characters" if how == "characters" else "words"
    return {
        f"first {count} {kind} of the sentence": {"text": first[0], **scored(first, given, how)},
        f"always {constant!r}": {"text": constant, **scored([constant] * len(given), given, how)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="what prepare_questions.py made")
    parser.add_argument("--split", default="valid")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    found = baselines(asked.data, asked.split)
    for name, facts in found.items():
        print(f"{name}: ROUGE-L {100 * facts['rouge_l']:.2f}", flush=True)
    write_whole(asked.output, json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
