#!/usr/bin/env python3
"""Prepare text for masked language models; see `prepare_corpus.py --help`. `corpora/` holds the implementation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import command
from command import at_least
from corpora.documents import KINDS
from corpora.files import listed
from corpora.job import Settings
from corpora.pieces import FILES
from corpora.pipeline import prepare
from corpora.stages import START, Machines

DESCRIPTION = """\
Makes of text what masked language models are trained on: documents, sentences, pieces, shards of fairseq's binary
files. Run again after an interruption it goes on. docs/data.md says what lies where afterwards."""
EXAMPLES = """\
examples:
  prepare_corpus.py --train wiki/ books/ --valid-part 0.005 --output data-bin/books_wiki --tokenizer wordpiece \\
      --vocabulary 30522 --tasks 64 --workers 16
  prepare_corpus.py --train data/train.txt.zst --valid data/valid.txt --output data-bin/own --tokenizer sentencepiece
  prepare_corpus.py --train wiki100/ --valid-part 0.001 --languages --output data-bin/wiki100 \\
      --tokenizer sentencepiece --vocabulary 120000 --tasks 256 --executor slurm --slurm-partition cpu
"""
VOCABULARY = {"gpt2": 0, "sentencepiece": 8000, "wordpiece": 30_000}


PART = command.number(float, lambda part: 0 < part < 1, "a part between 0 and 1")
SMOOTHING = command.number(float, lambda power: 0 <= power <= 1, "0 (all languages alike) to 1 (as they are)")


def main(arguments: list[str]) -> int:
    made = parser()
    asked = made.parse_args(arguments)
    check(made, asked)

    def work() -> Path | None:
        sources = listed(asked.train, asked.valid, asked.language, asked.documents, languages=asked.languages)
        if asked.dry_run:
            for source in sources:
                print(source.split, source.language, source.documents, source.path, sep="\t")
            return None
        own = asked.tokenizer_path and asked.tokenizer_path.absolute()
        vocabulary = 0 if own else asked.vocabulary or VOCABULARY[asked.tokenizer]
        settings = command.settings(Settings, asked, vocabulary=vocabulary)
        prepare(sources, asked.output.absolute(), settings, own, command.settings(Machines, asked))
        return Path(asked.output)

    return command.exit_status(work, command.GOES_ON)


def parser() -> argparse.ArgumentParser:
    made = command.parser("prepare_corpus.py", DESCRIPTION, EXAMPLES)
    _text(made.add_argument_group("text"))
    _tokenizer(made.add_argument_group("pieces"))
    _machines(made.add_argument_group("work"))
    made.add_argument("--dry-run", action="store_true", help="list the files, write nothing")
    return made


def _text(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--train", nargs="+", required=True, metavar="FILE|FOLDER", help="also KIND:FOLDER, of --documents")
    valid = group.add_mutually_exclusive_group(required=True)
    valid.add_argument("--valid", nargs="+", default=[], metavar="FILE|FOLDER")
    told = "hold out each document of --train with chance P"
    valid.add_argument("--valid-part", type=PART, default=0.0, metavar="P", help=told)
    add("--output", type=Path, required=True, metavar="DIR")
    add("--documents", choices=KINDS, default="auto", help="what parts them; auto: by the first line")
    add("--language", default="en", metavar="CODE", help="whose sentences they are (en)")
    add("--languages", action="store_true", help="each FOLDER holds a folder a language, named by code")
    add("--smoothing", type=SMOOTHING, default=0.7, metavar="S", help="languages in proportion n**S (0.7)")
    add("--longest", type=at_least(1), default=126, metavar="N", help="pieces of an item (126)")
    add("--limit", type=at_least(1), default=0, metavar="DOCUMENTS", help="at most so many of training")
    add("--seed", type=int, default=1, help="of the order of documents and all draws (1)")


def _tokenizer(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--tokenizer", choices=FILES, required=True)
    told = "gpt2: a folder with encoder.json, vocab.bpe, dict.txt; wordpiece: vocab.txt; sentencepiece: a .model. "
    told += "Without it the last two are learned"
    add("--tokenizer-path", type=Path, metavar="PATH", help=told)
    told = "pieces to learn (sentencepiece 8000, wordpiece 30000)"
    add("--vocabulary", type=at_least(1), metavar="N", help=told)
    told = "wordpiece: keep capitals and accents; wanted for a vocab.txt with capitals"
    add("--cased", action="store_true", help=told)


def _machines(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--tasks", type=at_least(1), default=1, metavar="N", help="parts of the work, and shards (1)")
    add("--workers", type=at_least(1), default=1, metavar="N", help="tasks at a time (1)")
    add("--executor", choices=START, default="local")
    add("--slurm-partition", metavar="NAME")
    add("--slurm-time", default="24:00:00", metavar="TIME", help="of a task (24:00:00)")
    add("--slurm-arg", action="append", default=[], metavar="NAME=VALUE", help="of sbatch: account=a")
    add("--memory", type=at_least(1), default=4, metavar="GB", help="of a task, on slurm and ray (4)")


def check(made: argparse.ArgumentParser, asked: argparse.Namespace) -> None:
    """End the program if options contradict each other."""
    if asked.tokenizer == "gpt2" and asked.tokenizer_path is None:
        made.error("--tokenizer gpt2 wants --tokenizer-path FOLDER with encoder.json, vocab.bpe and dict.txt")
    if asked.tokenizer_path is not None and asked.vocabulary is not None:
        made.error("--vocabulary is for a tokenizer that is learned: leave it out with --tokenizer-path")
    if asked.cased and asked.tokenizer != "wordpiece":
        made.error(f"--cased is for wordpiece: {asked.tokenizer} keeps capitals")
    if asked.executor != "slurm" and (asked.slurm_partition or asked.slurm_arg):
        made.error("--slurm-... goes with --executor slurm")
    if bad := [one for one in asked.slurm_arg if "=" not in one]:
        made.error(f"--slurm-arg {bad[0]}: NAME=VALUE is wanted")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
