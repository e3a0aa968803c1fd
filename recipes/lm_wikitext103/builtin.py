"""A small invented corpus of words: articles of the sentences of the demo, laid out as WikiText is."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from recipes.lib.invented.sentences import Grammar, Lexicon
from recipes.lib.lines import write
from recipes.lib.package import whole_folder

ARTICLES = {"train": 150, "valid": 15, "test": 15}
PARAGRAPHS, SENTENCES = (2, 4), (2, 6)
RARE = 0.02  # of the words are <unk>, as WikiText's rare ones are


def article(rng: random.Random, grammar: Grammar, number: int) -> list[str]:
    """Its title and paragraphs, with empty lines between them."""
    lines = ["", f"= Story {number % 10} =", ""]
    for _ in range(rng.randint(*PARAGRAPHS)):
        words = " . ".join(grammar.pair().source for _ in range(rng.randint(*SENTENCES))).split()
        lines.append(" ".join("<unk>" if rng.random() < RARE else word for word in [*words, "."]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder for wiki.{train,valid,test}.tokens")
    parser.add_argument("--seed", type=int, required=True)
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    grammar = Grammar(rng, Lexicon())
    with whole_folder(asked.output) as partial:
        for split, number in ARTICLES.items():
            lines = (f" {line} " for one in range(number) for line in article(rng, grammar, one))
            write(partial / f"wiki.{split}.tokens", lines)


if __name__ == "__main__":
    main()
