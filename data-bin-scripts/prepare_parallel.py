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
from parallel.cleaning import check_language
from parallel.pipeline import HELD_OUT, Settings, prepare
from parallel.sources import Source

DESCRIPTION = """\
Makes of parallel corpora what the translation recipe takes as --corpus: train, valid and test in two languages, raw
text, a sentence a line. Pairs of training are cleaned, and counted at every step; sets of validation and test stay as
they are. docs/data.md says what lies where afterwards."""
EXAMPLES = """\
examples:
  prepare_parallel.py --pair en-de --train mine/train --valid mine/dev --test mine/test --output data/mine
  prepare_parallel.py --pair en-cs --train europarl-v7.cs-en commoncrawl.cs-en --newstest wmt18/ --workers 8 \\
      --valid newstest2016 newstest2017 --test newstest2018 --output data/en-cs
  prepare_parallel.py --pair en-de --train mine/train --newstest sacrebleu --valid newstest2017 --test newstest2018 \\
      --limit 10000 --output data/trial
"""


#: as in fairseq's script for WMT14
LONGEST = 250
#: fairseq's ratio of 1.5 counts subwords. For words, 1.5 would leave out 4 % (en-de) and 9 % (en-cs) of newstest2013 to
#: 2017, which people translated; 2 leaves out 0.2 % and 0.7 %.
RATIO = 2.0


ANY_RATIO = command.number(float, lambda ratio: ratio == 0 or 1 <= ratio < float("inf"), "1 or more, or 0 for any,")


def main(arguments: list[str]) -> int:
    asked = parser().parse_args(arguments)

    def work() -> Path | None:
        if asked.check:
            check(asked)
            return None
        found = listed(asked)
        if asked.dry_run:
            for source in found:
                print(source.split, source.name, *source.files, sep="\t")
            return None
        settings = command.settings(Settings, asked, pair="-".join(asked.pair))
        if prepare(found, asked.output.absolute(), settings, asked.workers):
            print((asked.output / "report.md").read_text(encoding="utf-8"))
        return Path(asked.output)

    return command.exit_status(work, command.GOES_ON)


def parser() -> argparse.ArgumentParser:
    # no abbreviations: --val after --valid would override it
    made = command.parser("prepare_parallel.py", DESCRIPTION, EXAMPLES, allow_abbrev=False)
    _text(made.add_argument_group("text"))
    _cleaning(made.add_argument_group("what is left out of training (0: no limit)"))
    add = made.add_argument
    add("--workers", type=at_least(1), default=1, metavar="N", help="processes (1); they change no byte")
    told = "check all but what is still to be fetched: corpora, and sets by year"
    add("--check", action="store_true", help=told)
    add("--dry-run", action="store_true", help="list the files, write nothing")
    return made


def _text(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--pair", type=_pair, required=True, metavar="A-B", help="languages, as files end: en-de")
    told = "files PREFIX.A and PREFIX.B, plain or packed"
    add("--train", nargs="+", required=True, metavar="PREFIX", help=told)
    for split in HELD_OUT:
        told = "PREFIX, or newstestYEAR with --newstest"
        add(f"--{split}", nargs="+", required=True, metavar="SET", help=told)
    told = "WMT's sets, as sgm or lines, there or in its dev/, test/, A-B/; or sacrebleu, which fetches them"
    add("--newstest", default="", metavar="FOLDER", help=told)
    add("--output", type=Path, required=True, metavar="DIR")
    add("--limit", type=at_least(0), default=0, metavar="N", help="read the first N pairs of each corpus")


def _cleaning(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    told = f"words and marks of a sentence ({LONGEST})"
    add("--longest-words", type=at_least(0), default=LONGEST, metavar="N", help=told)
    told = f"times as many words on one side as on the other ({RATIO:g})"
    add("--ratio", type=ANY_RATIO, default=RATIO, metavar="R", help=told)
    add("--identical", choices=("keep", "drop"), default="keep", help="pairs of equal sides (keep)")
    add("--duplicates", choices=("keep", "drop"), default="drop", help="pairs that came before (drop)")
    add("--language-id", action="store_true", help="other languages than the pair's (needs py3langid)")


def listed(asked: argparse.Namespace) -> list[Source]:
    """Return all corpora and sets.

    Raises:
        CorpusError: A corpus or set does not exist, or is named twice.
    """
    if asked.newstest and not any(sources.NEWSTEST.fullmatch(word) for word in (*asked.valid, *asked.test)):
        raise CorpusError("--newstest is for sets newstestYEAR, and neither --valid nor --test names one")
    found = [sources.training(prefix, asked.pair) for prefix in asked.train]
    for split in ("valid", "test"):
        found += [
            sources.held_out(split, word, asked.newstest, asked.pair, look=asked.dry_run)
            for word in getattr(asked, split)
        ]
    for number, source in enumerate(found):
        if any(source.files == other.files for other in found[:number]):
            raise CorpusError(f"{source.files[0]} is given twice: name each corpus and set once")
    return found


def check(asked: argparse.Namespace) -> None:
    """Check all that can be known before anything is fetched: the user's own sets, and the language identification.

    Raises:
        CorpusError: A set does not exist, or the language identification cannot be used.
    """
    for split in ("valid", "test"):
        for word in getattr(asked, split):
            if asked.newstest or not sources.NEWSTEST.fullmatch(word):
                sources.held_out(split, word, asked.newstest, asked.pair, look=True)
    if asked.language_id:
        check_language(asked.pair)


def _pair(text: str) -> tuple[str, str]:
    found = re.fullmatch(r"([A-Za-z]{2,}(?:_\w+)?)-([A-Za-z]{2,}(?:_\w+)?)", text)
    if found is None or found[1] == found[2]:
        raise argparse.ArgumentTypeError(f"{text!r} is no pair of languages: en-de, en-cs, ...")
    return found[1], found[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
