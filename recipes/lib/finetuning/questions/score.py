"""Score predictions with EM and F1 by the rules of the official scripts, and find the best threshold for SQuAD 2.0.

python -m recipes.lib.finetuning.questions.score --data data-bin/squad-spans --predictions DIR --output scores.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from fairseq_posenc.metrics import squad
from recipes.lib.package import write_whole

from .scores import golds, rules_of, scored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--data", type=Path, required=True, metavar="DIR", help="Output folder of prepare_spans.py.")
    option("--split", default="valid", metavar="NAME", help="Split to score (default: valid).")
    text = "Output folder of recipes.lib.finetuning.questions.predict, or a predictions.json."
    option("--predictions", type=Path, required=True, metavar="PATH", help=text)
    option("--rules", choices=squad.RULES, help="Scoring rules (default: the rules of the SQuAD version in --data).")
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the scores.")
    arguments = parser.parse_args()
    gold = golds(arguments.data, arguments.split)
    try:
        scores = scored(gold, arguments.predictions, arguments.rules or rules_of(arguments.data))
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: --predictions {arguments.predictions}: {error}") from None
    print(json.dumps(scores), flush=True)
    write_whole(arguments.output, json.dumps(scores, indent=1))


if __name__ == "__main__":
    main()
