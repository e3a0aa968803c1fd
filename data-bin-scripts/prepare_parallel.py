#!/usr/bin/env python3
"""Prepare parallel text for translation; see `prepare_parallel.py --help`. `parallel/` holds the implementation."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import command
from command import at_least
from parallel import parts, sets
from parallel.cleaning import STEPS
from shared import RECORD, CorpusError, digest, make, write_whole

DESCRIPTION = """\
Prepare parallel corpora for the option --corpus of the translation recipe. The output folder holds the training,
validation and test sets in two languages, as raw text with one sentence per line. Training pairs are cleaned, and
report.md counts the pairs that each cleaning step leaves out. Validation and test sets are not cleaned.
docs/data.md describes the output folder."""
EXAMPLES = """\
examples:
  prepare_parallel.py --pair en-de --train mine/train --valid mine/dev --test mine/test --output data/mine
  prepare_parallel.py --pair en-cs --train europarl-v7.cs-en commoncrawl.cs-en --workers 8 \\
      --valid newstest2016 newstest2017 --test newstest2018 --output data/en-cs
"""
#: Words of a sentence, as in fairseq's script for WMT14.
LONGEST = 250
#: fairseq's ratio of 1.5 counts subwords. For words, 1.5 would leave out 4 % (en-de) and 9 % (en-cs) of newstest2013 to
#: 2017, which people translated; 2 leaves out 0.2 % and 0.7 %.
RATIO = 2.0
ANY_RATIO = command.number(float, lambda ratio: ratio == 0 or 1 <= ratio < float("inf"), "1 or more, or 0 for no limit")
HELD_OUT = ("valid", "test")
#: the options that determine the output, besides the files
OPTIONS = ("pair", "longest_words", "ratio", "identical", "duplicates", "limit")
#: Version 3 removed the reader of sgm files.
FORMAT = 4


def main(arguments: list[str]) -> int:
    options = parse(arguments)

    def work() -> Path | None:
        chosen = listed(options)
        if options.check:
            return None
        if prepare(chosen, options):
            print((options.output / "report.md").read_text(encoding="utf-8"))
        return Path(options.output)

    return command.exit_status(work, command.RESUME)


def parse(arguments: list[str]) -> argparse.Namespace:
    # Abbreviations are off, because --val after --valid would override it.
    parser = command.parser("prepare_parallel.py", DESCRIPTION, EXAMPLES, allow_abbrev=False)
    add = parser.add_argument
    text = "Codes of the two languages, for example en-de. The names of the text files end in these codes."
    add("--pair", type=_pair, required=True, metavar="A-B", help=text)
    text = "Training corpora. With --pair en-de, PREFIX stands for the two files PREFIX.en and PREFIX.de. "
    text += "The files may be compressed."
    add("--train", nargs="+", required=True, metavar="PREFIX", help=text)
    for split, name in zip(HELD_OUT, ("Validation", "Test"), strict=True):
        text = f"{name} sets: each is a PREFIX as for --train, or newstestYEAR."
        add(f"--{split}", nargs="+", required=True, metavar="SET", help=text)
    text = "Folder with WMT's newstest sets as text, or `sacrebleu` to download them with sacreBLEU (default)."
    add("--newstest", default=sets.SACREBLEU, metavar="DIR", help=text)
    add("--output", type=Path, required=True, metavar="DIR", help="Folder to write.")
    text = "Read only the first N pairs of each training corpus (default: all)."
    add("--limit", type=at_least(0), default=0, metavar="N", help=text)
    text = f"Leave out pairs with more than N words or punctuation marks on a side (default: {LONGEST}; 0: no limit)."
    add("--longest-words", type=at_least(0), default=LONGEST, metavar="N", help=text)
    text = "Leave out pairs in which one side has more than R times as many words as the other side "
    text += f"(default: {RATIO:g}; 0: no limit)."
    add("--ratio", type=ANY_RATIO, default=RATIO, metavar="R", help=text)
    text = "What to do with pairs whose two sides are equal (default: keep)."
    add("--identical", choices=("keep", "drop"), default="keep", help=text)
    text = "What to do with pairs that already occurred in the same or in an earlier training corpus (default: drop)."
    add("--duplicates", choices=("keep", "drop"), default="drop", help=text)
    text = "Number of processes (default: 1). The result does not depend on this number."
    add("--workers", type=at_least(1), default=1, metavar="N", help=text)
    add("--check", action="store_true", help="Check the options, the validation and the test sets, and write nothing.")
    return parser.parse_args(arguments)


def _pair(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"([A-Za-z]{2,}(?:_\w+)?)-([A-Za-z]{2,}(?:_\w+)?)", text)
    if match is None or match[1] == match[2]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a pair of two different languages. Give en-de, for example.")
    return match[1], match[2]


def listed(options: argparse.Namespace) -> list[sets.Source]:
    """Return the corpora and sets that the options name; with --check, only validation and test sets.

    Raises:
        CorpusError: A corpus or set does not exist, or is named twice.
    """
    chosen = [
        sets.find(split, name, options.newstest, options.pair, download=not options.check)
        for split in (HELD_OUT if options.check else ("train", *HELD_OUT))
        for name in getattr(options, split)
    ]
    often = Counter(source.files for source in chosen)
    if twice := [files[0] for files, number in often.items() if number > 1]:
        raise CorpusError(f"{twice[0]} is given twice. Name each corpus and each set only once.")
    return chosen


def prepare(sources: list[sets.Source], options: argparse.Namespace) -> bool:
    """Write the output, unless it is already complete, and return whether it was written.

    Raises:
        CorpusError: The text or an option is not valid.
    """
    facts = [
        {"split": s.split, "name": s.name, "files": [{"name": f.name, "sha256": digest(f)} for f in s.files]}
        for s in sources
    ]
    identity = {"options": {name: getattr(options, name) for name in OPTIONS}, "files": facts}
    identity["versions"] = {"format": FORMAT, "unicode": unicodedata.unidata_version}

    def work(folder: Path) -> Path:
        result = folder / "corpus"
        shutil.rmtree(result, ignore_errors=True)
        result.mkdir()

        def targets(split: str) -> tuple[Path, Path]:
            return result / f"{split}.{options.pair[0]}", result / f"{split}.{options.pair[1]}"

        # The sets come first, so that their errors appear before the long work.
        held_out = {split: sets.write([s for s in sources if s.split == split], targets(split)) for split in HELD_OUT}
        train = [source for source in sources if source.split == "train"]
        corpora = list(parts.clean(folder / "parts", train, options))
        tallies = parts.merge(corpora, targets("train"), duplicates=options.duplicates == "keep")
        if not any(tally.counts["kept"] for tally in tallies):
            why = ", ".join(f"{tally.counts[step]:,} {step}" for tally in tallies for step in tally.lines)
            raise CorpusError(f"{train[0].files[0]}: the cleaning left out all training pairs ({why}). Relax it.")
        record = {"train": [{"name": tally.name} | tally.counts for tally in tallies], **held_out}
        write_whole(result / "report.md", page(tallies, held_out, options))
        record = {"pair": "-".join(options.pair), "counts": record, "identity": identity}
        write_whole(result / RECORD, json.dumps(record, indent=1) + "\n")
        return result

    return make(options.output.absolute(), identity, work)


def page(tallies: list[parts.Tally], held_out: dict[str, Any], options: argparse.Namespace) -> str:
    """Return the content of report.md: the pairs that each step left out, with the lines of the first ones."""
    lines = [f"# {'-'.join(options.pair)}", "", "| set | pairs | number | first lines |", "| --- | --- | ---: | --- |"]
    for tally in tallies:
        for row in ("read", *STEPS, "kept", "mended", "words 0", "words 1"):
            places = " ".join(map(str, tally.lines.get(row, [])))
            lines.append(f"| {tally.name} | {row} | {tally.counts[row]:,} | {places} |")
    for split, entries in held_out.items():
        for entry in entries:
            lines.append(f"| {split}: {entry['name']} | kept | {entry['pairs']:,} | |")
            lines.append(f"| {split}: {entry['name']} | empty | {entry['empty']:,} | |")
    lines += ["", "A pair is counted under the first rule that it breaks:", ""]
    lines += [f"- {step}: {reason}" for step, reason in STEPS.items()]
    lines += ["- mended: The pair was kept in Unicode NFC, without control characters and with single spaces.", ""]
    flags = [f"--{name.replace('_', '-')} {getattr(options, name)}" for name in OPTIONS[1:]]
    return "\n".join([*lines, f"Options: {', '.join(flags)}", ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
