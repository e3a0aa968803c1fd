"""EM and F1 of predictions, as the sets' own scripts have them; of SQuAD 2.0 the best threshold too.

python -m recipes.finetune_squad.score --data data-bin/squad-spans --predictions FOLDER --output scores.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from fairseq_posenc.data import spans
from fairseq_posenc.metrics import null_threshold, squad
from recipes.lib.stages import read_json, write_atomically

from .files import TEXTS, THRESHOLD


def golds(folder: Path, split: str) -> dict[str, list[str]]:
    """The answers of every question of the file, also of those that could not be used."""
    return {one.id: one.answers for one in spans.questions(folder, split)}


def rules_of(folder: Path) -> str:
    """Of `squad.RULES`, by the version that was prepared."""
    return f"squad-v{spans.record(folder)['version']}"


def named(found: dict[str, float]) -> dict[str, float]:
    """EM and F1 by one name, whatever the script calls them."""
    return {"em": found.get("exact_match", found.get("exact", 0.0)), **found}


def scored(wanted: dict[str, list[str]], predictions: Path, rules: str) -> dict[str, Any]:
    """Args:
    predictions: a folder with predict.py's files, or a predictions.json.
    """
    alone = predictions.is_file()
    if rules == squad.V20 and not alone:
        texts, odds, threshold = (read_json(predictions / name) for name in (TEXTS, "null_odds.json", THRESHOLD))
        found = null_threshold.evaluate(wanted, texts, odds, threshold)
    else:
        given = read_json(predictions if alone else predictions / "predictions.json")
        found = squad.evaluate(wanted, given, rules)
    return {**named(found), "rules": rules}


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
        found = scored(wanted, asked.predictions, asked.rules or rules_of(asked.data))
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {asked.predictions}: {error}") from None
    print(json.dumps(found), flush=True)
    write_atomically(asked.output, json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
