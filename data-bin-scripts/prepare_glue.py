#!/usr/bin/env python3
"""Prepare a GLUE task for fine-tuning; see `prepare_glue.py --help`. `glue/` holds the implementation."""

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
Makes of a task of GLUE, or of XNLI, what --task posenc_sentence_prediction (or fairseq's sentence_prediction) is
trained on: ids of a pretrained model's pieces, as fairseq's binary files. Its files as they were published, plain or
.gz: train.tsv, dev.tsv, test.tsv, MNLI's of both kinds, MRPC's also as msr_paraphrase_{train,test}.txt with
mrpc_dev_ids.tsv; XNLI's as xnli.dev.tsv, xnli.test.tsv and multinli.train.en.tsv, or as XTREME has them (train-en.tsv,
dev-de.tsv, test-de.tsv, ...), or with GLUE's MNLI/train.tsv."""
EXAMPLES = """\
examples:
  prepare_glue.py --task SST-2 --data glue_data --checkpoint checkpoint_last.pt --output data-bin/glue/SST-2
  prepare_glue.py --task MNLI --data data/raw/glue --checkpoint bert-base-uncased --separators 1 --longest 128 \\
      --output data-bin/glue/MNLI
"""


def parser() -> argparse.ArgumentParser:
    made = command.parser("prepare_glue.py", DESCRIPTION, EXAMPLES)
    add = made.add_argument
    add("--task", required=True, choices=list(TASKS))
    add("--data", type=Path, required=True, metavar="FOLDER", help="with the task's files, or with a folder of them")
    told = "of fairseq's, or a Hugging Face folder: pieces"
    add("--checkpoint", type=Path, required=True, metavar="MODEL", help=told)
    add("--tokenizer-path", type=Path, metavar="PATH", help="of the model, where it does not lie beside its dict.txt")
    add("--output", type=Path, required=True, metavar="DIR")
    add("--longest", type=at_least(8), default=512, metavar="N", help="pieces of an item; the rest is cut off (512)")
    told = "that fairseq-train will have: with extend=repeat, say, items may be longer than in the pretraining"
    add("--pos-enc-args", metavar="OPTIONS", help=told)
    add("--separators", type=int, choices=(1, 2), default=2, help="</s> in a pair: 2 as RoBERTa, 1 as BERT (2)")
    add("--bad", choices=HOW, default="refuse", help="wrong rows; of XNLI with their translations (refuse)")
    add("--limit", type=at_least(0), default=0, metavar="N", help="the first rows of training (0: all)")
    told = "where there is no training file: the first rows of the development set, and the others are left to it"
    add("--train-rows", type=at_least(0), default=0, metavar="N", help=told)
    add("--languages", metavar="A,B", help="of XNLI's development and test sets (all that are there)")
    add("--dry-run", action="store_true", help="list the files, write nothing")
    return made


def main(arguments: list[str]) -> int:
    made = parser()
    asked = made.parse_args(arguments)
    if asked.languages and asked.task != "XNLI":
        made.error("--languages is of XNLI: leave it out")

    def work() -> Path | None:
        languages = tuple(filter(None, (asked.languages or "").split(",")))
        settings = command.settings(Settings, asked, languages=languages)
        if asked.dry_run:
            for split, path in sources(asked.data, settings).items():
                print(split, path, sep="\t")
            return None
        tell(prepare(asked.data, asked.output.absolute(), settings))
        return Path(asked.output)

    return command.exit_status(work)


def tell(record: dict[str, Any]) -> None:
    """Print the counts of the prepared folder."""
    for split, facts in record["splits"].items():
        print(
            f"{split}: {facts['items']:,} of {facts['given']:,} rows, {facts['pieces']:,} pieces, {facts['cut']:,} "
            f"items cut to {record['longest']}, {facts['unknown']:,} pieces unknown"
            + ("" if facts["labelled"] else ", no labels")
        )
        if facts["unknown"] > record["strange"] * facts["pieces"]:
            part = f"more than {record['strange']:.0%} of its pieces are unknown"
            print(f"warning: {split}: {part}: its scores say little")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
