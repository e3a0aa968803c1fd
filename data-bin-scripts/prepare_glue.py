#!/usr/bin/env python3
"""Prepare a GLUE task, or XNLI, for fine-tuning; see `prepare_glue.py --help`. `glue/` holds the implementation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import command
from command import at_least
from glue.checks import HOW
from glue.formats import TASKS
from glue.pipeline import Settings, prepare, sources

DESCRIPTION = """\
Prepare a GLUE task, or XNLI, for --task posenc_sentence_prediction or fairseq's sentence_prediction: tokenise the rows
with the tokenizer of a pretrained model, and write fairseq's binary files. The input consists of the published files,
plain or .gz. A GLUE task has train.tsv, dev.tsv and test.tsv; MNLI has matched and mismatched sets. MRPC can also be
read from msr_paraphrase_{train,test}.txt with mrpc_dev_ids.tsv. XNLI has xnli.dev.tsv, xnli.test.tsv and
multinli.train.en.tsv, or train-en.tsv, dev-LANGUAGE.tsv and test-LANGUAGE.tsv as in XTREME. The training file of XNLI
can also be GLUE's MNLI/train.tsv."""
EXAMPLES = """\
examples:
  prepare_glue.py --task SST-2 --data glue_data --checkpoint checkpoint_last.pt --output data-bin/glue/SST-2
  prepare_glue.py --task MNLI --data data/raw/glue --checkpoint bert-base-uncased --separators 1 --longest 128 \\
      --output data-bin/glue/MNLI
"""


def build_parser() -> argparse.ArgumentParser:
    parser = command.parser("prepare_glue.py", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add("--task", required=True, choices=list(TASKS), help="Name of a GLUE task, or XNLI.")
    text = "Folder that holds the files of the task, either directly or in a subfolder with the name of the task."
    add("--data", type=Path, required=True, metavar="DIR", help=text)
    text = "Pretrained model that provides the vocabulary: a fairseq checkpoint or a Hugging Face folder."
    add("--checkpoint", type=Path, required=True, metavar="FILE|DIR", help=text)
    text = "Tokenizer of the model: a file or folder (default: the tokenizer in the folder of the model's dict.txt)."
    add("--tokenizer-path", type=Path, metavar="PATH", help=text)
    add("--output", type=command.data_folder, required=True, metavar="DIR", help="Folder to write.")
    text = "Maximum number of pieces in an item (default: 512). Longer items are cut at the end; in pairs, the longer "
    text += "sentence is cut."
    add("--longest", type=at_least(8), default=512, metavar="N", help=text)
    text = "Options that fairseq-train will get as --pos-enc-args. For example, extend=repeat allows items that are "
    text += "longer than those of pretraining."
    add("--pos-enc-args", metavar="A=B,C=D", help=text)
    text = "Number of </s> between the sentences of a pair: 2 as in RoBERTa, 1 as in BERT (default: 2)."
    add("--separators", type=int, choices=(1, 2), default=2, help=text)
    text = "What to do with bad rows: refuse stops with a list, skip leaves them out (default: refuse). "
    text += "In XNLI, skip also leaves out the translations of bad rows."
    add("--bad", choices=HOW, default="refuse", help=text)
    text = "Maximum number of training rows (default: 0, which means all rows)."
    add("--limit", type=at_least(0), default=0, metavar="N", help=text)
    text = (
        "If there is no training file, train on the first N rows of the development set, and leave these rows "
        "out of the development set."
    )
    add("--train-rows", type=at_least(0), default=0, metavar="N", help=text)
    text = "Languages of XNLI's development and test sets (default: all that have files)."
    add("--languages", metavar="A,B", help=text)
    add("--dry-run", action="store_true", help="List the input files and write nothing.")
    return parser


def main(arguments: list[str]) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.languages and options.task != "XNLI":
        parser.error(f"--languages is only for --task XNLI. Leave out --languages with --task {options.task}.")

    def work() -> Path | None:
        languages = tuple(filter(None, (options.languages or "").split(",")))
        settings = command.settings(Settings, options, languages=languages)
        if options.dry_run:
            for split, path in sources(options.data, settings).items():
                print(split, path, sep="\t")
            return None
        print_counts(prepare(options.data, options.output.absolute(), settings))
        return Path(options.output)

    return command.exit_status(work)


def print_counts(record: dict[str, Any]) -> None:
    """Print the counts of the prepared folder."""
    for split, facts in record["splits"].items():
        print(
            f"{split}: {facts['items']:,} of {facts['given']:,} rows, {facts['pieces']:,} pieces, {facts['cut']:,} "
            f"rows cut to {record['longest']} pieces, {facts['unknown']:,} pieces unknown"
            + ("" if facts["labelled"] else ", no labels")
        )
        if facts["unknown"] > record["strange"] * facts["pieces"]:
            part = f"more than {record['strange']:.0%} of its pieces are unknown"
            print(f"warning: {split}: {part}, so its scores mean little")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
