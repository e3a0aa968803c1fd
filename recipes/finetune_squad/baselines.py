"""Score baselines that need no model: a span of mean length that shares most words with the question, the empty answer
(SQuAD 2.0 only), and the gold answers, which must score 100."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from recipes.lib.finetuning.questions.scores import baselines
from recipes.lib.package import write_whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="what prepare_spans.py made")
    parser.add_argument("--split", default="valid")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    scores = baselines(asked.data, asked.split)
    for name, facts in scores.items():
        print(f"{name}: EM {facts['em']:.2f}, F1 {facts['f1']:.2f}", flush=True)
    write_whole(asked.output, json.dumps(scores, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
