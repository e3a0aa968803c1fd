#!/usr/bin/env python3
"""Prepare parallel text for translation; see `prepare_parallel.py --help`. `parallel/` holds the implementation."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import command
from command import at_least
from corpora.errors import CorpusError
from parallel import sources
from parallel.cleaning import Settings, check_language
from parallel.pipeline import HELD_OUT, prepare
from parallel.sources import Source

DESCRIPTION = """\
Prepare parallel corpora for the option --corpus of the translation recipe. The output folder holds the training,
validation and test sets in two languages, as raw text with one sentence per line. Training pairs are cleaned, and
report.md counts the pairs that each cleaning step leaves out. Validation and test sets are not cleaned.
docs/data.md describes the output folder."""
EXAMPLES = """\
examples:
  prepare_parallel.py --pair en-de --train mine/train --valid mine/dev --test mine/test --output data/mine
  prepare_parallel.py --pair en-cs --train europarl-v7.cs-en commoncrawl.cs-en --newstest wmt18/ --workers 8 \\
      --valid newstest2016 newstest2017 --test newstest2018 --output data/en-cs
  prepare_parallel.py --pair en-de --train mine/train --newstest sacrebleu --valid newstest2017 --test newstest2018 \\
      --limit 10000 --output data/trial
"""


#: Words of a sentence, as in fairseq's script for WMT14.
LONGEST = 250
#: fairseq's ratio of 1.5 counts subwords. For words, 1.5 would leave out 4 % (en-de) and 9 % (en-cs) of newstest2013 to
#: 2017, which people translated; 2 leaves out 0.2 % and 0.7 %.
RATIO = 2.0


ANY_RATIO = command.number(float, lambda ratio: ratio == 0 or 1 <= ratio < float("inf"), "1 or more, or 0 for no limit")


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)

    def work() -> Path | None:
        if options.check:
            check(options)
            return None
        chosen = listed(options)
        if options.dry_run:
            for source in chosen:
                print(source.split, source.name, *source.files, sep="\t")
            return None
        settings = command.settings(Settings, options, pair="-".join(options.pair))
        if prepare(chosen, options.output.absolute(), settings, options.workers):
            print((options.output / "report.md").read_text(encoding="utf-8"))
        return Path(options.output)

    return command.exit_status(work, command.RESUME)


def parser() -> argparse.ArgumentParser:
    # Abbreviations are off, because --val after --valid would override it.
    parser = command.parser("prepare_parallel.py", DESCRIPTION, EXAMPLES, allow_abbrev=False)
    _text(parser.add_argument_group("text"))
    _cleaning(parser.add_argument_group("cleaning of the training pairs"))
    add = parser.add_argument
    text = "Number of processes (default: 1). The result does not depend on this number."
    add("--workers", type=at_least(1), default=1, metavar="N", help=text)
    text = "Check your own validation and test sets and --language-id, without downloading or writing anything."
    add("--check", action="store_true", help=text)
    add("--dry-run", action="store_true", help="List the files, without downloading or writing anything.")
    return parser


def _text(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "Codes of the two languages, for example en-de. The names of the text files end in these codes."
    add("--pair", type=_pair, required=True, metavar="A-B", help=text)
    text = "Training corpora. With --pair en-de, PREFIX stands for the two files PREFIX.en and PREFIX.de. "
    text += "The files may be compressed."
    add("--train", nargs="+", required=True, metavar="PREFIX", help=text)
    for split, name in zip(HELD_OUT, ("Validation", "Test"), strict=True):
        text = f"{name} sets: each is a PREFIX as for --train, or newstestYEAR (with --newstest)."
        add(f"--{split}", nargs="+", required=True, metavar="SET", help=text)
    text = "Folder with WMT's newstest sets as sgm files or plain text, or `sacrebleu` to download them with sacreBLEU."
    add("--newstest", default="", metavar="DIR", help=text)
    add("--output", type=Path, required=True, metavar="DIR", help="Folder to write.")
    text = "Read only the first N pairs of each training corpus (default: all)."
    add("--limit", type=at_least(0), default=0, metavar="N", help=text)


def _cleaning(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = f"Leave out pairs with more than N words or punctuation marks on a side (default: {LONGEST}; 0: no limit)."
    add("--longest-words", type=at_least(0), default=LONGEST, metavar="N", help=text)
    text = "Leave out pairs in which one side has more than R times as many words as the other side "
    text += f"(default: {RATIO:g}; 0: no limit)."
    add("--ratio", type=ANY_RATIO, default=RATIO, metavar="R", help=text)
    text = "What to do with pairs whose two sides are equal (default: keep)."
    add("--identical", choices=("keep", "drop"), default="keep", help=text)
    text = "What to do with pairs that already occurred in the same or in an earlier training corpus (default: drop)."
    add("--duplicates", choices=("keep", "drop"), default="drop", help=text)
    text = "Leave out pairs that are not in the languages of --pair; needs the package py3langid."
    add("--language-id", action="store_true", help=text)


def listed(options: argparse.Namespace) -> list[Source]:
    """Return the training corpora, validation sets and test sets that the options name.

    Raises:
        CorpusError: A corpus or set does not exist, or is named twice.
    """
    if options.newstest and not any(sources.NEWSTEST.fullmatch(name) for name in (*options.valid, *options.test)):
        why = "neither --valid nor --test names a set such as newstest2017"
        raise CorpusError(
            f"--newstest {options.newstest}: {why}. Name a newstest set with --valid or --test, or leave --newstest "
            "out."
        )
    chosen = [sources.training(prefix, options.pair) for prefix in options.train]
    for split in HELD_OUT:
        chosen += [
            sources.held_out(split, name, options.newstest, options.pair, look=options.dry_run)
            for name in getattr(options, split)
        ]
    for number, source in enumerate(chosen):
        if any(source.files == other.files for other in chosen[:number]):
            raise CorpusError(f"{source.files[0]} is given twice. Name each corpus and each set only once.")
    return chosen


def check(options: argparse.Namespace) -> None:
    """Check the user's own sets and the language identification before anything is downloaded.

    Raises:
        CorpusError: A set does not exist, or the language identification cannot be used.
    """
    for split in HELD_OUT:
        for name in getattr(options, split):
            if options.newstest or not sources.NEWSTEST.fullmatch(name):
                sources.held_out(split, name, options.newstest, options.pair, look=True)
    if options.language_id:
        check_language(options.pair)


def _pair(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"([A-Za-z]{2,}(?:_\w+)?)-([A-Za-z]{2,}(?:_\w+)?)", text)
    if match is None or match[1] == match[2]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a pair of two different languages. Give en-de, for example.")
    return match[1], match[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
