"""Write a small invented corpus whose documents consist of sentences from the demo's grammar."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from recipes.lib.invented.sentences import Grammar, Lexicon
from recipes.lib.lines import write
from recipes.lib.package import whole_folder

DOCUMENTS = {"train": 200, "valid": 20}
SENTENCES = (4, 12)


def document(rng: random.Random, grammar: Grammar) -> str:
    """Return a document: one paragraph of random sentences."""
    sentences = (grammar.pair().source for _ in range(rng.randint(*SENTENCES)))
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder for train.txt and valid.txt.")
    parser.add_argument(
        "--seed", type=int, required=True, metavar="N", help="Random seed for generating the documents."
    )
    args = parser.parse_args()
    rng = random.Random(args.seed)
    grammar = Grammar(rng, Lexicon())
    with whole_folder(args.output) as partial:
        for split, number in DOCUMENTS.items():
            lines = (line for _ in range(number) for line in (document(rng, grammar), ""))
            write(partial / f"{split}.txt", lines)


if __name__ == "__main__":
    main()
