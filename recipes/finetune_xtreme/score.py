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
        folder: The prepared folder.
        score: Returns the scores of a language, given its name and its scoring rules.
    Raises:
        ValueError: No language has answers.
    """
    labelled = [one for one in spans.splits(folder) if has_answers(folder, one, SETS[task].rules(one))]
    for one in spans.splits(folder):
        if one not in labelled:
            print(f"{one}: its file has no answers: predicted, not scored", flush=True)
    if not labelled:
        raise ValueError(f"no file of {task} has answers; XTREME's own copies may have none, the published files do")
    return {one: score(one, SETS[task].rules(one)) for one in labelled}


def has_answers(folder: Path, language: str, rules: str) -> bool:
    """Return whether any gold answer has words: where XTREME withholds the answers, their texts are empty."""
    how = squad.rules(rules)
    return any(how.words(answer) for some in golds(folder, language).values() for answer in some)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=list(SETS), required=True)
    parser.add_argument("--data", type=Path, required=True, help="what prepare_spans.py made, a split each language")
    parser.add_argument("--predictions", type=Path, help="answer.py's folder; unset: the baselines")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()

    def of_model(language: str, rules: str) -> dict[str, Any]:
        return scored(golds(asked.data, language), asked.predictions / language, rules)

    def of_none(language: str, rules: str) -> dict[str, Any]:
        return baselines(asked.data, language, rules)

    try:
        found = by_language(asked.task, asked.data, of_model if asked.predictions else of_none)
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None
    for language, facts in found.items():
        print(language, json.dumps(facts), flush=True)
    write_whole(asked.output, json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
