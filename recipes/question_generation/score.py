"""Score generated questions (output of fairseq-generate or one question per line) against the raw questions.

python -m recipes.question_generation.score --data data-bin/squad --generated generate-valid.txt --output scores.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairseq_posenc import metrics
from fairseq_posenc.data import question_pieces
from recipes.lib.lines import read
from recipes.lib.package import write_whole

from .data import items, units

UNKNOWN = "<unk>"


def generated(path: Path) -> list[list[str]]:
    """Return the pieces of each generated question, in the order of the items.

    fairseq-generate writes the questions in lines like `H-7<tab>score<tab>pieces`, in the order of its batches.

    Raises:
        SystemExit: The question of an item is missing.
    """
    rows = (line.split("\t", 2) for line in read(path) if line.startswith("H-"))
    questions = {int(name[2:]): pieces.split(" ") for name, _, pieces in rows}
    missing = [str(number) for number in range(max(questions, default=-1) + 1) if number not in questions]
    if missing:
        problem = f"the questions of {len(missing)} items are missing (the first are {', '.join(missing[:5])})"
        raise SystemExit(f"error: {path}: {problem}. Run fairseq-generate again.")
    return [[piece for piece in questions[number] if piece] for number in range(len(questions))]


def copied(outputs: Sequence[Sequence[str]], items: Sequence[dict[str, Any]]) -> float:
    """Return the fraction of generated pieces that the model must have copied, because the dictionary lacks them."""
    total = sum(map(len, outputs))
    unknown = sum(piece in item["unknown"] for pieces, item in zip(outputs, items, strict=True) for piece in pieces)
    return unknown / max(total, 1)


def scored(texts: list[str], items: list[dict[str, Any]], unit: str) -> dict[str, Any]:
    """Return the scores of generated questions.

    Args:
        texts: Generated questions.
        items: The items of the split, one for each generated question.
        unit: Unit in which questions are compared, such as words.

    Raises:
        SystemExit: The numbers of questions and items differ.
    """
    if len(texts) != len(items):
        problem = f"there are {len(texts)} questions, but the split has {len(items)} items"
        raise SystemExit(f"error: {problem}. Generate one question for each item.")
    scores = metrics.score(texts, [item["references"] for item in items], [item["source"] for item in items], unit)
    return {**asdict(scores), "units": unit}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="Output folder of prepare_questions.py."
    )
    parser.add_argument("--split", default="valid", metavar="NAME", help="Split to score (default: valid).")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--generated", type=Path, metavar="FILE", help="Output of fairseq-generate.")
    text = "File with one question per line, in the order of the items, instead of --generated."
    which.add_argument("--hypotheses", type=Path, metavar="FILE", help=text)
    text = "File to which the questions are written, one per line (default: none)."
    parser.add_argument("--questions", type=Path, metavar="FILE", help=text)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="JSON file to write.")
    args = parser.parse_args()
    split_items, more = items(args.data, args.split), {}
    if args.generated:
        outputs = generated(args.generated)
        join = question_pieces.load(args.data).join
        texts = [join(pieces) for pieces in outputs]
        if len(outputs) == len(split_items):
            total = max(sum(map(len, outputs)), 1)
            more["unknown words copied"] = copied(outputs, split_items)
            more["unknown words left"] = sum(pieces.count(UNKNOWN) for pieces in outputs) / total
    else:
        texts = list(read(args.hypotheses))
    facts = scored(texts, split_items, units(args.data)) | more
    if args.questions:
        write_whole(args.questions, "".join(f"{' '.join(text.split())}\n" for text in texts))
    write_whole(args.output, json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
