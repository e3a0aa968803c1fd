"""Score predictions with EM and F1 as the official scripts do, and find the best threshold for SQuAD 2.0.

python -m recipes.finetune_squad.score --data data-bin/squad-spans --predictions FOLDER --output scores.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from fairseq_posenc.metrics import squad
from recipes.lib.finetuning.questions.scores import golds, rules_of, scored
from recipes.lib.package import write_whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="what prepare_spans.py made")
    parser.add_argument("--split", default="valid")
    parser.add_argument("--predictions", type=Path, required=True, help="predict.py's folder, or a predictions.json")
    parser.add_argument("--rules", choices=squad.RULES, help="of the scores (by the version that was prepared)")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    wanted = golds(asked.data, asked.split)
    try:
        scores = scored(wanted, asked.predictions, asked.rules or rules_of(asked.data))
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {asked.predictions}: {error}") from None
    print(json.dumps(scores), flush=True)
    write_whole(asked.output, json.dumps(scores, indent=1))


if __name__ == "__main__":
    main()
