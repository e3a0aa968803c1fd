"""Score baselines that need no model.

The baselines are the empty answer (SQuAD 2.0 only), the gold answers, and a span of the text. The gold answers must
score 100. The span of the text has the mean length of a gold answer, and no other span of this length shares more words
with the question.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from recipes.lib.finetuning.questions.scores import baselines
from recipes.lib.package import write_whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    option("--data", type=Path, required=True, metavar="DIR", help="Output folder of prepare_spans.py.")
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the scores.")
    arguments = parser.parse_args()
    scores = baselines(arguments.data, "valid")
    for name, facts in scores.items():
        print(f"{name}: EM {facts['em']:.2f}, F1 {facts['f1']:.2f}", flush=True)
    write_whole(arguments.output, json.dumps(scores, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
