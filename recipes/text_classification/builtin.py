"""Write invented reviews of two classes, which differ in word order: `not good but bad` and `not bad but good`."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from fairseq_posenc.core.writing import whole_folder
from recipes.lib.lines import write

THINGS = "film story song play actor scene ending plot picture dialogue".split()
GOOD = "good great fine lovely clever funny moving charming".split()
BAD = "bad poor dull boring silly slow weak flat".split()
FILLERS = ["the", "really", "very", "quite", "also", "still", "rather", "truly"]
ROWS = {"train": 2000, "dev": 200, "test": 200}


def review(draw: random.Random) -> tuple[str, str]:
    """Return a text and its label. The adjective after `but` determines the label."""
    positive = draw.random() < 0.5
    first, second = (BAD, GOOD) if positive else (GOOD, BAD)
    filler = [draw.choice(FILLERS) for _ in range(draw.randrange(4))]
    text = ["the", draw.choice(THINGS), "is", *filler, "not", draw.choice(first), "but", draw.choice(second)]
    return " ".join(text), "positive" if positive else "negative"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder to write.")
    parser.add_argument("--seed", type=int, required=True, metavar="N", help="Random seed for generating the reviews.")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    with whole_folder(arguments.output) as folder:
        for split, rows in ROWS.items():
            write(folder / f"{split}.tsv", ["text\tlabel", *("\t".join(review(draw)) for _ in range(rows))])


if __name__ == "__main__":
    main()
