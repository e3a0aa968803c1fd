"""Write a small invented corpus in WikiText's format; its sentences follow the demo's grammar."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from recipes.lib.invented.sentences import Grammar, Lexicon
from recipes.lib.lines import write
from recipes.lib.package import whole_folder

ARTICLES = {"train": 150, "valid": 15, "test": 15}
PARAGRAPHS, SENTENCES = (2, 4), (2, 6)
RARE = 0.02  # fraction of the words that become <unk>, like WikiText's rare words


def article(rng: random.Random, grammar: Grammar, number: int) -> list[str]:
    """Return the lines of an article: its title and paragraphs, with an empty line on both sides of the title."""
    lines = ["", f"= Story {number % 10} =", ""]
    for _ in range(rng.randint(*PARAGRAPHS)):
        words = " . ".join(grammar.pair().source for _ in range(rng.randint(*SENTENCES))).split()
        lines.append(" ".join("<unk>" if rng.random() < RARE else word for word in [*words, "."]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    text = "Folder for wiki.{train,valid,test}.tokens."
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help=text)
    parser.add_argument("--seed", type=int, required=True, metavar="N", help="Random seed for generating the articles.")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    grammar = Grammar(rng, Lexicon())
    with whole_folder(args.output) as partial:
        for split, count in ARTICLES.items():
            lines = (f" {line} " for number in range(count) for line in article(rng, grammar, number))
            write(partial / f"wiki.{split}.tokens", lines)


if __name__ == "__main__":
    main()
