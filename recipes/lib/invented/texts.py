"""Write a small invented English corpus from the demo's grammar: plain documents, or articles in WikiText's format."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from fairseq_posenc.core.writing import whole_folder
from recipes.lib.invented.sentences import Grammar, Lexicon

RARE = 0.02  # fraction of an article's words that become <unk>, like WikiText's rare words


def document(rng: random.Random, grammar: Grammar, number: int) -> str:
    """Return a document: a paragraph of 4 to 12 sentences, and an empty line."""
    sentences = (grammar.pair().source for _ in range(rng.randint(4, 12)))
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences) + "\n\n"


def article(rng: random.Random, grammar: Grammar, number: int) -> str:
    """Return an article: a title between empty lines, and 2 to 4 paragraphs of 2 to 6 sentences."""
    lines = ["", f"= Story {number % 10} =", ""]
    for _ in range(rng.randint(2, 4)):
        words = " . ".join(grammar.pair().source for _ in range(rng.randint(2, 6))).split()
        lines.append(" ".join("<unk>" if rng.random() < RARE else word for word in [*words, "."]))
    return "".join(f" {line} \n" for line in lines)


#: Function that writes a text, and number of texts in each file, by the kind of corpus.
KINDS = {
    "documents": (document, {"train.txt": 200, "valid.txt": 20}),
    "articles": (article, {"wiki.train.tokens": 150, "wiki.valid.tokens": 15, "wiki.test.tokens": 15}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS, help="What the corpus consists of.")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="Folder to write.")
    parser.add_argument("--seed", type=int, required=True, metavar="N", help="Random seed of the texts.")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    grammar, (write, files) = Grammar(rng, Lexicon()), KINDS[args.kind]
    with whole_folder(args.output) as partial:
        for name, count in files.items():
            text = "".join(write(rng, grammar, number) for number in range(count))
            (partial / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
