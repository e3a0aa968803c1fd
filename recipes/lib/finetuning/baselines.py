"""Score answers that need no model, before hours of training: constant labels, and spans that share words.

The gold answers of questions must score 100, which tests the scorer.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from fairseq_posenc.core.writing import write_whole
from fairseq_posenc.data import spans

from . import question_scores, sentences
from .columns import SENTENCES, Scores
from .tasks import QUESTIONS, metrics


def of_sentences(folder: Path, item: str, papers: str) -> dict[str, Any]:
    """Return the scores of the best constant answer, and the margins by which a model beats it, by split."""
    scores, margins = sentences.constants(folder, metrics(item, papers))
    return {"scores": {"constant answer": scores}, "margins": margins}


def of_questions(folder: Path, suffix: str) -> dict[str, Any]:
    """Return the scores of each baseline by split, for the prepared folder of SQuAD and of the sets of XTREME."""
    by_name: dict[str, Scores] = {}
    for place, split, key, rules in splits(folder, suffix):
        for name, scores in question_scores.baselines(place, split, rules).items():
            by_name.setdefault(name, {})[key] = scores
    return {"scores": by_name}


def splits(folder: Path, suffix: str) -> list[tuple[Path, str, str, str | None]]:
    """Return the splits that are scored: the folder, the split, its name in the scores, and its scoring rules.

    Raises:
        SystemExit: No language of a set has answers.
    """
    own = [split for split in spans.splits(folder) if split != "train"]
    valid: list[tuple[Path, str, str, str | None]] = [(folder, split, split, None) for split in own]
    for name in QUESTIONS:
        if (place := folder.with_name(name + suffix)).exists():
            rules = {code: f"mlqa-{code}" if name == "MLQA" else "squad-v1.1" for code in spans.splits(place)}
            scored = [code for code in rules if question_scores.has_answers(place, code, rules[code])]
            if not scored:
                problem = "XTREME's copies of the files may lack the answers. Use the files of the dataset's authors"
                raise SystemExit(f"error: no file of {name} has answers. {problem}.")
            valid += [(place, code, f"{name} {code}", rules[code]) for code in scored]
    return valid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    option("--run", type=Path, required=True, metavar="DIR", help="Folder of the run.")
    option("--items", required=True, metavar="TASK,...", help="Tasks on which models are trained.")
    option("--papers", default="", metavar="PAPER/MODEL", help="Paper whose metrics come first.")
    option("--output", type=Path, required=True, metavar="FILE", help="JSON file for the scores.")
    arguments = parser.parse_args()
    scores = {}
    for item in arguments.items.split(","):
        folder = min((arguments.run / "data").glob(f"{item}*"))  # the text is the same for all models
        sentence = (folder / SENTENCES).exists()
        suffix = folder.name.removeprefix(item)
        scores[item] = of_sentences(folder, item, arguments.papers) if sentence else of_questions(folder, suffix)
    write_whole(arguments.output, json.dumps(scores, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
