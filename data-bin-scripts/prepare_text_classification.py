#!/usr/bin/env python3
"""Prepares text classification from scratch: `prepare_text_classification.py --help`. The parts: `classification/`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import command
from classification.pipeline import Settings, prepare, sources
from classification.reading import OF_GLUE
from classification.words import TOKENIZERS
from command import at_least, number

TASKS = ("imdb", "snli", *OF_GLUE)
DESCRIPTION = """\
Prepares texts or pairs of texts with a label for --task posenc_sentence_prediction and --arch posenc_classifier.
The words of the training set that are frequent, and in GloVe if --glove is given, become the vocabulary; all other
words become <unk>. The checkpoint is chosen on the validation set and the test set is scored once: GLUE's development
sets become test sets, and a missing validation or test set is held out from training."""
EXAMPLES = """\
examples:
  prepare_text_classification.py --task sst2 --data data/raw/glue --glove data/raw/glove/glove.840B.300d.zip \\
      --output data-bin/classification/sst2
  prepare_text_classification.py --data my-folder --text title --label topic --output data-bin/classification/topics
"""


def parser() -> argparse.ArgumentParser:
    made = command.parser("prepare_text_classification.py", DESCRIPTION, EXAMPLES)
    add = made.add_argument
    add("--task", choices=TASKS, default="own", help="Published task in DIR. Without it, DIR holds your own files.")
    text = (
        "Folder with the published files of --task, or with train, dev and test (.tsv, .csv or .jsonl, plain or .gz)."
    )
    add("--data", type=Path, required=True, metavar="DIR", help=text)
    add("--output", type=Path, required=True, metavar="DIR", help="Folder to write; it must not exist.")
    add("--text", default="text", metavar="COLUMN", help="Column of the text in your own files (default: text).")
    add("--pair", default="", metavar="COLUMN", help="Column of the second text, for pairs.")
    add("--label", default="label", metavar="COLUMN", help="Column of the label (default: label).")
    text = "Split text with NLTK's Penn Treebank rules, or at spaces if it is tokenised already (default: nltk)."
    add("--tokenizer", choices=TOKENIZERS, default="nltk", help=text)
    text = "Keep words that occur more than N times in training (default: 3)."
    add("--more-than", type=at_least(0), default=3, metavar="N", help=text)
    text = "Word vectors in GloVe's format, as text or in a zip; words without a vector become <unk>."
    add("--glove", type=Path, metavar="FILE", help=text)
    text = "Longest item in tokens, including the marks; longer texts are cut (default: 512)."
    add("--longest", type=at_least(8), default=512, metavar="N", help=text)
    text = "Probability with which a training row is held out for a missing validation or test set (default: 0.1)."
    part = number(float, lambda value: 0 < value < 1, "a number between 0 and 1")
    add("--valid-part", type=part, default=0.1, metavar="P", help=text)
    add("--seed", type=int, default=1, metavar="N", help="Random seed of that choice (default: 1).")
    text = "What to do with rows without text or label: stop with a list, or leave them out (default: refuse)."
    add("--bad", choices=("refuse", "skip"), default="refuse", help=text)
    add("--limit", type=at_least(0), default=0, metavar="N", help="Use only the first N training rows (default: all).")
    add("--dry-run", action="store_true", help="List the files and write nothing.")
    return made


def main(arguments: list[str]) -> int:
    made = parser()
    asked = made.parse_args(arguments)
    columns = {name: getattr(asked, name) for name in ("text", "pair", "label")}
    if asked.task != "own" and columns != {name: made.get_default(name) for name in columns}:
        made.error("--text, --pair and --label are for your own files: leave them out with --task")

    def work() -> Path | None:
        settings = command.settings(Settings, asked)
        if asked.dry_run:
            for split, source in sources(settings).items():
                print(split, source.path, sep="\t")
            return None
        show(prepare(asked.output.absolute(), settings))
        return Path(asked.output)

    return command.exit_status(work)


def show(record: dict[str, Any]) -> None:
    """Print what is in the folder."""
    print(f"{record['words']:,} words, {len(record['labels'])} labels: {', '.join(record['labels'])}")
    for split, facts in record["splits"].items():
        unknown = f"{facts['unknown'] / max(facts['pieces'], 1):.1%} unknown words"
        print(f"{split}: {facts['items']:,} rows, {facts['cut']:,} cut to {record['longest']}, {unknown}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
