"""The command line of prepare_parallel.py."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from corpora.errors import CorpusError

from . import language, sources
from .pipeline import Settings
from .sources import Source

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


#: as fairseq's script for WMT14 has it
LONGEST = 250
#: fairseq's 1.5 is of subwords; of words it would leave out 4 % (en-de) and 9 % (en-cs) of newstest2013 to 2017, which
#: people translated, where 2 leaves out 0.2 % and 0.7 %
RATIO = 2.0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="prepare_parallel.py",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # --val after --valid would be the one that counts
    )
    _text(made.add_argument_group("text"))
    _cleaning(made.add_argument_group("what is left out of training (0: no limit)"))
    made.add_argument("--workers", type=_positive, default=1, metavar="N", help="processes (1); they change no byte")
    made.add_argument(
        "--check", action="store_true", help="check all but what is still to be fetched: corpora, and sets by year"
    )
    made.add_argument("--dry-run", action="store_true", help="list the files, write nothing")
    return made


def _text(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--pair", type=_pair, required=True, metavar="A-B", help="languages, as files end: en-de")
    group.add_argument(
        "--train", nargs="+", required=True, metavar="PREFIX", help="files PREFIX.A and PREFIX.B, plain or packed"
    )
    for split in ("valid", "test"):
        group.add_argument(
            f"--{split}", nargs="+", required=True, metavar="SET", help="PREFIX, or newstestYEAR with --newstest"
        )
    group.add_argument(
        "--newstest",
        default="",
        metavar="FOLDER",
        help="WMT's sets, as sgm or lines, there or in its dev/, test/, A-B/; or sacrebleu, which fetches them",
    )
    group.add_argument("--output", type=Path, required=True, metavar="DIR")
    group.add_argument("--limit", type=_count, default=0, metavar="N", help="read the first N pairs of each corpus")


def _cleaning(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--longest-words", type=_count, default=LONGEST, metavar="N", help=f"words and marks of a sentence ({LONGEST})"
    )
    group.add_argument(
        "--ratio",
        type=_ratio,
        default=RATIO,
        metavar="R",
        help=f"times as many words on one side as on the other ({RATIO:g})",
    )
    group.add_argument("--identical", choices=("keep", "drop"), default="keep", help="pairs of equal sides (keep)")
    group.add_argument("--duplicates", choices=("keep", "drop"), default="drop", help="pairs that came before (drop)")
    group.add_argument("--language-id", action="store_true", help="other languages than the pair's (needs py3langid)")


def settings(asked: argparse.Namespace) -> Settings:
    return Settings(
        longest_words=asked.longest_words,
        ratio=asked.ratio,
        identical=asked.identical,
        language_id=asked.language_id,
        pair="-".join(asked.pair),
        duplicates=asked.duplicates,
        limit=asked.limit,
    )


def listed(asked: argparse.Namespace) -> list[Source]:
    """All corpora and sets.

    Raises:
        CorpusError: one is not there, or named twice.
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
    """What can be known before anything is fetched: the sets that are the user's, and the identifier of languages.

    Raises:
        CorpusError: one is not there.
    """
    for split in ("valid", "test"):
        for word in getattr(asked, split):
            if asked.newstest or not sources.NEWSTEST.fullmatch(word):
                sources.held_out(split, word, asked.newstest, asked.pair, look=True)
    if asked.language_id:
        language.check(asked.pair)


def _pair(text: str) -> tuple[str, str]:
    found = re.fullmatch(r"([A-Za-z]{2,}(?:_\w+)?)-([A-Za-z]{2,}(?:_\w+)?)", text)
    if found is None or found[1] == found[2]:
        raise argparse.ArgumentTypeError(f"{text!r} is no pair of languages: en-de, en-cs, ...")
    return found[1], found[2]


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 0 or more")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def _ratio(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if found != 0 and not 1 <= found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no ratio: 1 or more, or 0 for any")
    return found
