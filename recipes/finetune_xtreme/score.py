"""Score predictions by language with EM and F1 as the official scripts do; without --predictions, score baselines.

python -m recipes.finetune_xtreme.score --task XQuAD --data data-bin/xquad --predictions predictions --output FILE
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairseq_posenc.data import spans
from fairseq_posenc.metrics import squad
from recipes.lib.finetuning.questions.scores import baselines, golds, scored
from recipes.lib.package import write_whole

from .sets import SETS


def by_language(task: str, folder: Path, score: Callable[[str, str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the scores of the languages whose files have gold answers, and print which files have none.

    Args:
        task: Name of a dataset.
        folder: Folder with the prepared questions.
        score: Function that returns the scores of a language, given its code and the name of its scoring rules.
    Raises:
        ValueError: No language has answers.
    """
    labelled = [code for code in spans.splits(folder) if has_answers(folder, code, SETS[task].rules(code))]
    for language in spans.splits(folder):
        if language not in labelled:
            print(f"{language}: the file has no answers, so the predictions are not scored.", flush=True)
    if not labelled:
        raise ValueError(
            f"no file of {task} has answers. XTREME's copies of the files may lack the answers. Use the files of the "
            "dataset's authors."
        )
    return {language: score(language, SETS[task].rules(language)) for language in labelled}


def has_answers(folder: Path, language: str, rules: str) -> bool:
    """Return whether any gold answer has words. If XTREME withholds answers, the file has empty texts instead."""
    scoring = squad.rules(rules)
    return any(scoring.words(answer) for answers in golds(folder, language).values() for answer in answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--task", choices=list(SETS), required=True, help="Name of the dataset.")
    text = "Output folder of prepare_spans.py with a split for each language."
    option("--data", type=Path, required=True, metavar="DIR", help=text)
    text = "Output folder of recipes.finetune_xtreme.answer (default: score the baselines)."
    option("--predictions", type=Path, metavar="DIR", help=text)
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the scores.")
    arguments = parser.parse_args()
    data, predictions = arguments.data, arguments.predictions

    def score_predictions(language: str, rules: str) -> dict[str, Any]:
        return scored(golds(data, language), predictions / language, rules)

    def score_baselines(language: str, rules: str) -> dict[str, Any]:
        return baselines(data, language, rules)

    try:
        scores = by_language(arguments.task, data, score_predictions if predictions else score_baselines)
    except ValueError as error:
        raise SystemExit(f"error: --data {data}: {error}") from None
    for language, facts in scores.items():
        print(language, json.dumps(facts), flush=True)
    write_whole(arguments.output, json.dumps(scores, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
