"""Write a small set of invented questions in SQuAD's format, and the texts of the questions for pretraining."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from recipes.lib.invented.questions import ARTICLES, article
from recipes.lib.lines import write
from recipes.lib.package import whole_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    text = "Folder for train.json, dev.json and text/."
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help=text)
    parser.add_argument(
        "--seed", type=int, required=True, metavar="N", help="Random seed for generating the questions."
    )
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with whole_folder(arguments.output) as partial:
        (partial / "text").mkdir()
        for split, count in ARTICLES.items():
            articles = [article(rng, split, number) for number in range(count)]
            file = partial / f"{'dev' if split == 'valid' else split}.json"
            file.write_text(json.dumps({"version": "builtin", "data": articles}, indent=1) + "\n", encoding="utf-8")
            texts = (part["context"] for item in articles for part in item["paragraphs"])
            write(partial / "text" / f"{split}.txt", (line for text in texts for line in (text, "")))


if __name__ == "__main__":
    main()
