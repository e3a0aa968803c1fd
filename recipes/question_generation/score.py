"""Score the output of fairseq-generate, or a file with one question per line, against the raw questions of a folder.

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

    fairseq-generate writes them in lines like `H-7<tab>score<tab>pieces`, in the order of its batches.

    Raises:
        SystemExit: The question of an item is missing.
    """
    rows = (line.split("\t", 2) for line in read(path) if line.startswith("H-"))
    found = {int(name[2:]): pieces.split(" ") for name, _, pieces in rows}
    missing = [str(number) for number in range(max(found, default=-1) + 1) if number not in found]
    if missing:
        told = ", ".join(missing[:5])
        raise SystemExit(f"error: {path} has no question of {len(missing)} items ({told} ...): generate them again")
    return [[piece for piece in found[number] if piece] for number in range(len(found))]


def copied(outputs: Sequence[Sequence[str]], given: Sequence[dict[str, Any]]) -> float:
    """Return the fraction of generated pieces that are not in the dictionary, so the model must have copied them."""
    total = sum(map(len, outputs))
    from_source = sum(piece in one["unknown"] for pieces, one in zip(outputs, given, strict=True) for piece in pieces)
    return from_source / max(total, 1)


def scored(texts: list[str], given: list[dict[str, Any]], how: str) -> dict[str, Any]:
    """Return the scores of questions.

    Args:
        texts: Generated questions.
        given: The items, one for each question.
        how: The unit by which questions are compared.
    Raises:
        SystemExit: The numbers of questions and items differ.
    """
    if len(texts) != len(given):
        raise SystemExit(f"error: {len(texts)} questions were generated, the split has {len(given)} items")
    found = metrics.score(texts, [one["references"] for one in given], [one["source"] for one in given], how)
    return {**asdict(found), "units": how}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="what prepare_questions.py made")
    parser.add_argument("--split", default="valid")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--generated", type=Path, help="what fairseq-generate wrote")
    which.add_argument("--hypotheses", type=Path, help="instead: a question a line, in the order of the items")
    parser.add_argument("--questions", type=Path, help="where the questions go as plain lines")
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    given, more = items(asked.data, asked.split), {}
    if asked.generated:
        pieces = generated(asked.generated)
        join = question_pieces.load(asked.data).join
        texts = [join(one) for one in pieces]
        if len(pieces) == len(given):
            more["unknown words copied"] = copied(pieces, given)
            more["unknown words left"] = sum(one.count(UNKNOWN) for one in pieces) / max(sum(map(len, pieces)), 1)
    else:
        texts = list(read(asked.hypotheses))
    facts = scored(texts, given, units(asked.data)) | more
    if asked.questions:
        write_whole(asked.questions, "".join(f"{' '.join(text.split())}\n" for text in texts))
    write_whole(asked.output, json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
