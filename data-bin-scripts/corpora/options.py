"""The command line of prepare_corpus.py."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from .documents import KINDS
from .job import Settings
from .numbers import at_least
from .pieces import FILES
from .stages import START, Machines

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


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="prepare_corpus.py",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _text(made.add_argument_group("text"))
    _tokenizer(made.add_argument_group("pieces"))
    _machines(made.add_argument_group("work"))
    made.add_argument("--dry-run", action="store_true", help="list the files, write nothing")
    return made


def _text(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--train", nargs="+", required=True, metavar="FILE|FOLDER", help="also KIND:FOLDER, of --documents"
    )
    valid = group.add_mutually_exclusive_group(required=True)
    valid.add_argument("--valid", nargs="+", default=[], metavar="FILE|FOLDER")
    valid.add_argument(
        "--valid-part", type=_part, default=0.0, metavar="P", help="hold out each document of --train with chance P"
    )
    group.add_argument("--output", type=Path, required=True, metavar="DIR")
    group.add_argument("--documents", choices=KINDS, default="auto", help="what parts them; auto: by the first line")
    group.add_argument("--language", default="en", metavar="CODE", help="whose sentences they are (en)")
    group.add_argument("--languages", action="store_true", help="each FOLDER holds a folder a language, named by code")
    group.add_argument(
        "--smoothing", type=_smoothing, default=0.7, metavar="S", help="languages in proportion n**S (0.7)"
    )
    group.add_argument("--longest", type=at_least(1), default=126, metavar="N", help="pieces of an item (126)")
    group.add_argument("--limit", type=at_least(1), default=0, metavar="DOCUMENTS", help="at most so many of training")
    group.add_argument("--seed", type=int, default=1, help="of the order of documents and all draws (1)")


def _tokenizer(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--tokenizer", choices=FILES, required=True)
    group.add_argument(
        "--tokenizer-path",
        type=Path,
        metavar="PATH",
        help="gpt2: a folder with encoder.json, vocab.bpe, dict.txt; wordpiece: vocab.txt; sentencepiece: a .model. "
        "Without it the last two are learned",
    )
    group.add_argument(
        "--vocabulary", type=at_least(1), metavar="N", help="pieces to learn (sentencepiece 8000, wordpiece 30000)"
    )
    group.add_argument(
        "--cased",
        action="store_true",
        help="wordpiece: keep capitals and accents; wanted for a vocab.txt with capitals",
    )


def _machines(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--tasks", type=at_least(1), default=1, metavar="N", help="parts of the work, and shards (1)")
    group.add_argument("--workers", type=at_least(1), default=1, metavar="N", help="tasks at a time (1)")
    group.add_argument("--executor", choices=START, default="local")
    group.add_argument("--slurm-partition", metavar="NAME")
    group.add_argument("--slurm-time", default="24:00:00", metavar="TIME", help="of a task (24:00:00)")
    group.add_argument("--slurm-arg", action="append", default=[], metavar="NAME=VALUE", help="of sbatch: account=a")
    group.add_argument("--memory", type=at_least(1), default=4, metavar="GB", help="of a task, on slurm and ray (4)")


def check(made: argparse.ArgumentParser, asked: argparse.Namespace) -> None:
    """Options that contradict each other."""
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


def settings(asked: argparse.Namespace) -> Settings:
    return Settings(
        tokenizer=asked.tokenizer,
        vocabulary=0 if asked.tokenizer_path else asked.vocabulary or VOCABULARY[asked.tokenizer],
        cased=asked.cased,
        longest=asked.longest,
        tasks=asked.tasks,
        language=asked.language,
        languages=asked.languages,
        smoothing=asked.smoothing,
        seed=asked.seed,
        limit=asked.limit,
        valid_part=asked.valid_part,
    )


def machines(asked: argparse.Namespace) -> Machines:
    return Machines(
        executor=asked.executor,
        workers=asked.workers,
        partition=asked.slurm_partition,
        time=asked.slurm_time,
        memory=asked.memory,
        arguments=tuple(asked.slurm_arg),
    )


def _part(word: str) -> float:
    number = float(word)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{word}: a part between 0 and 1 is wanted")
    return number


def _smoothing(word: str) -> float:
    number = float(word)
    if not (math.isfinite(number) and 0 <= number <= 1):
        raise argparse.ArgumentTypeError(f"{word}: 0 (all languages alike) to 1 (as they are) is wanted")
    return number
