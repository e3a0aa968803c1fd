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
Prepare text for training masked language models: split it into documents and sentences, tokenise them, and write
shards of fairseq's binary files. After an interruption, run the same command again to continue.
docs/data.md describes the output."""
EXAMPLES = """\
examples:
  prepare_corpus.py --train wiki/ books/ --valid-part 0.005 --output data-bin/books_wiki --tokenizer wordpiece \\
      --vocabulary 30522 --tasks 64 --workers 16
  prepare_corpus.py --train data/train.txt.zst --valid data/valid.txt --output data-bin/own --tokenizer sentencepiece
  prepare_corpus.py --train wiki100/ --valid-part 0.001 --languages --output data-bin/wiki100 \\
      --tokenizer sentencepiece --vocabulary 120000 --tasks 256 --executor slurm --slurm-partition cpu
"""
VOCABULARY = {"gpt2": 0, "sentencepiece": 8000, "wordpiece": 30_000}


PART = command.number(float, lambda part: 0 < part < 1, "a number between 0 and 1")
SMOOTHING = command.number(float, lambda power: 0 <= power <= 1, "a number from 0 (equal shares) to 1 (shares by size)")


def main(arguments: list[str]) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)
    check(parser, options)

    def work() -> Path | None:
        sources = listed(options.train, options.valid, options.language, options.documents, languages=options.languages)
        if options.dry_run:
            for source in sources:
                print(source.split, source.language, source.documents, source.path, sep="\t")
            return None
        user_tokenizer = options.tokenizer_path and options.tokenizer_path.absolute()
        vocabulary = 0 if user_tokenizer else options.vocabulary or VOCABULARY[options.tokenizer]
        settings = command.settings(Settings, options, vocabulary=vocabulary)
        prepare(sources, options.output.absolute(), settings, user_tokenizer, command.settings(Machines, options))
        return Path(options.output)

    return command.exit_status(work, command.RESUME)


def build_parser() -> argparse.ArgumentParser:
    parser = command.parser("prepare_corpus.py", DESCRIPTION, EXAMPLES)
    _text(parser.add_argument_group("text"))
    _tokenizer(parser.add_argument_group("tokenizer"))
    _machines(parser.add_argument_group("tasks and machines"))
    parser.add_argument("--dry-run", action="store_true", help="List the input files and write nothing.")
    return parser


def _text(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = (
        "Training files or folders. KIND:PATH sets the format of a single PATH; --documents sets the format of "
        "all other paths."
    )
    add("--train", nargs="+", required=True, metavar="FILE|DIR", help=text)
    valid = group.add_mutually_exclusive_group(required=True)
    valid.add_argument("--valid", nargs="+", default=[], metavar="FILE|DIR", help="Validation files or folders.")
    text = "Move each training document to the validation set with probability P."
    valid.add_argument("--valid-part", type=PART, default=0.0, metavar="P", help=text)
    add("--output", type=command.data_folder, required=True, metavar="DIR", help="Folder to write.")
    text = "Format of the files, which decides where a document begins; auto detects it (default: auto)."
    add("--documents", choices=KINDS, default="auto", help=text)
    text = "Language of the text, for splitting it into sentences (default: en)."
    add("--language", default="en", metavar="CODE", help=text)
    text = "Each DIR contains one folder per language, named by the code of the language."
    add("--languages", action="store_true", help=text)
    text = "With --languages, repeat the text of the smaller languages, so that the share of a language with "
    text += "n pieces is proportional to n**S (default: 0.7)."
    add("--smoothing", type=SMOOTHING, default=0.7, metavar="S", help=text)
    text = "Maximum number of subword pieces in an item; longer sentences become several items (default: 126)."
    add("--longest", type=at_least(1), default=126, metavar="N", help=text)
    text = "Maximum number of training documents (default: all)."
    add("--limit", type=at_least(1), default=0, metavar="N", help=text)
    text = "Random seed for the order of documents and all other random choices (default: 1)."
    add("--seed", type=int, default=1, metavar="N", help=text)


def _tokenizer(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--tokenizer", choices=FILES, required=True, help="Type of the tokenizer.")
    text = (
        "Existing tokenizer: a folder with encoder.json, vocab.bpe and dict.txt (gpt2), a vocab.txt (wordpiece), a "
        ".model file (sentencepiece), or a folder that import-hf wrote. Without this option, wordpiece and "
        "sentencepiece learn a vocabulary from --train."
    )
    add("--tokenizer-path", type=Path, metavar="FILE|DIR", help=text)
    text = "Size of the vocabulary to learn (default: 8000 for sentencepiece, 30000 for wordpiece)."
    add("--vocabulary", type=at_least(1), metavar="N", help=text)
    text = "With wordpiece, keep capitals and accents. A vocab.txt with capitals needs this option."
    add("--cased", action="store_true", help=text)


def _machines(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "Divide the work into N tasks, and write N shards (default: 1)."
    add("--tasks", type=at_least(1), default=1, metavar="N", help=text)
    text = "Number of tasks that run at the same time (default: 1)."
    add("--workers", type=at_least(1), default=1, metavar="N", help=text)
    text = "Run the tasks on this machine (local), or on a SLURM or Ray cluster (default: local)."
    add("--executor", choices=START, default="local", help=text)
    add("--slurm-partition", metavar="NAME", help="SLURM partition, required by --executor slurm.")
    text = "Time limit of a task on SLURM (default: 24:00:00)."
    add("--slurm-time", default="24:00:00", metavar="HH:MM:SS", help=text)
    text = "Further option for sbatch, for example account=lab. The option can be repeated."
    add("--slurm-arg", action="append", default=[], metavar="NAME=TEXT", help=text)
    text = "Memory per task in GB, on SLURM and Ray (default: 4)."
    add("--memory", type=at_least(1), default=4, metavar="GB", help=text)


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Exit with an error if options contradict each other."""
    if options.tokenizer == "gpt2" and options.tokenizer_path is None:
        parser.error("--tokenizer gpt2 needs --tokenizer-path DIR, a folder with encoder.json, vocab.bpe and dict.txt.")
    if options.tokenizer_path is not None and options.vocabulary is not None:
        parser.error(
            "--vocabulary is only for learning a tokenizer. Leave out --vocabulary if you give --tokenizer-path."
        )
    if options.cased and options.tokenizer != "wordpiece":
        parser.error(
            f"--cased is only for wordpiece, because {options.tokenizer} always keeps capitals. Leave out --cased."
        )
    if options.executor != "slurm" and (options.slurm_partition or options.slurm_arg):
        parser.error("--slurm-partition and --slurm-arg need --executor slurm.")
    if bad := [argument for argument in options.slurm_arg if "=" not in argument]:
        parser.error(f"--slurm-arg {bad[0]}: give NAME=TEXT, for example account=lab.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
