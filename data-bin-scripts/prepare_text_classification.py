#!/usr/bin/env python3
"""Prepare data for text classification; see `--help`. `classification/` holds the implementation."""

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
Prepare texts or pairs of texts with labels for a classifier that is trained from scratch (--arch posenc_classifier and
--task posenc_sentence_prediction). The vocabulary holds the frequent words of the training set (with --glove, only
frequent words that have a vector). All other words become <unk>. The checkpoint is chosen on the validation set, and
the test set is scored once. GLUE's test labels are not public, so the development sets of GLUE become the test sets. If
the validation or test set is missing, rows of the training set are held out for it."""
EXAMPLES = """\
examples:
  prepare_text_classification.py --task sst2 --data data/raw/glue --glove data/raw/glove/glove.840B.300d.zip \\
      --output data-bin/classification/sst2
  prepare_text_classification.py --data my-folder --text title --label topic --output data-bin/classification/topics
"""


def parser() -> argparse.ArgumentParser:
    parser = command.parser("prepare_text_classification.py", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    text = "Published task whose files --data holds (default: your own files)."
    add("--task", choices=TASKS, default="own", help=text)
    text = "Folder with the published files of --task, or with your own train, dev and test files (.tsv, .csv or "
    text += ".jsonl, plain or .gz)."
    add("--data", type=Path, required=True, metavar="DIR", help=text)
    add("--output", type=command.data_folder, required=True, metavar="DIR", help="Folder to write; it must not exist.")
    add(
        "--text",
        default="text",
        metavar="COLUMN",
        help="Name of the column with the text in your own files (default: text).",
    )
    add(
        "--pair",
        default="",
        metavar="COLUMN",
        help="Name of the column with the second text of a pair (default: no pairs).",
    )
    add("--label", default="label", metavar="COLUMN", help="Name of the column with the label (default: label).")
    text = "Split text with NLTK's Penn Treebank rules, or at spaces if it is tokenised already (default: nltk)."
    add("--tokenizer", choices=TOKENIZERS, default="nltk", help=text)
    text = "Keep words that occur more than N times in the training set (default: 3)."
    add("--more-than", type=at_least(0), default=3, metavar="N", help=text)
    text = "File of word vectors in GloVe's format, plain or zipped; words without a vector become <unk>."
    add("--glove", type=Path, metavar="FILE", help=text)
    text = "Maximum number of tokens in an item, including <s> and </s>; longer texts are cut (default: 512)."
    add("--longest", type=at_least(8), default=512, metavar="N", help=text)
    text = "Probability that a training row is held out for a missing validation or test set (default: 0.1)."
    part = number(float, lambda value: 0 < value < 1, "a number between 0 and 1")
    add("--valid-part", type=part, default=0.1, metavar="P", help=text)
    add("--seed", type=int, default=1, metavar="N", help="Random seed for holding out rows (default: 1).")
    text = "What to do with rows without text or label: `refuse` stops with a list, `skip` leaves them out "
    text += "(default: refuse)."
    add("--bad", choices=("refuse", "skip"), default="refuse", help=text)
    add("--limit", type=at_least(0), default=0, metavar="N", help="Use only the first N training rows (default: all).")
    add("--dry-run", action="store_true", help="List the files and write nothing.")
    return parser


def main(arguments: list[str]) -> int:
    command_line = parser()
    options = command_line.parse_args(arguments)
    columns = {name: getattr(options, name) for name in ("text", "pair", "label")}
    if options.task != "own" and columns != {name: command_line.get_default(name) for name in columns}:
        command_line.error(
            "--text, --pair and --label are only for your own files. Leave out these options if you give --task."
        )

    def work() -> Path | None:
        settings = command.settings(Settings, options)
        if options.dry_run:
            for split, source in sources(settings).items():
                print(split, source.path, sep="\t")
            return None
        show(prepare(options.output.absolute(), settings))
        return Path(options.output)

    return command.exit_status(work)


def show(record: dict[str, Any]) -> None:
    """Print the numbers of words, labels and rows of the written folder."""
    print(f"{record['words']:,} words, {len(record['labels'])} labels: {', '.join(record['labels'])}")
    for split, count in record["splits"].items():
        unknown = f"{count['unknown'] / max(count['pieces'], 1):.1%} unknown words"
        print(f"{split}: {count['items']:,} rows, {count['cut']:,} cut to {record['longest']} tokens, {unknown}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
