#!/usr/bin/env python3
"""Prepare questions for extractive question answering; see `prepare_spans.py --help`. `spans/` implements it."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import command
from command import at_least
from questions import splits
from questions.problems import HOW
from spans.pipeline import FLAGS, TRAIN, Settings, prepare
from spans.sets import SETS, absent, begins, find
from spans.vocabulary import AUTO, WORDS

DESCRIPTION = """\
Cuts questions and their contexts (SQuAD 1.1 and 2.0, and others of that format; json, plain or .gz) into the windows
that --task posenc_squad is trained and evaluated on: pieces of a pretrained model's tokenizer, and where they lie in
the text."""
EXAMPLES = """\
examples:
  prepare_spans.py --checkpoint checkpoint_last.pt --train train-v1.1.json --eval dev-v1.1.json \\
      --output data-bin/squad-spans
  prepare_spans.py --checkpoint bert-base-uncased --separators 1 --version 2.0 --train train-v2.0.json \\
      --eval dev-v2.0.json --longest 512 --output data-bin/squad2-spans
  prepare_spans.py --checkpoint xlm/ --eval de=xquad.de.json --eval zh=xquad.zh.json --output data-bin/xquad
  prepare_spans.py --checkpoint xlm/ --set mlqa --data MLQA_V1/test --languages en,de,zh --output data-bin/mlqa
"""


def main(arguments: list[str]) -> int:
    made = parser()
    asked = made.parse_args(arguments)

    def work() -> Path | None:
        found, others = files(made, asked), apart(made, asked)
        if asked.dry_run:
            for split, path in found.items():
                print(split or "train and valid", path, sep="\t")
            return None
        seed = 1 if asked.seed is None else asked.seed
        shared = begins(asked.set, found) if asked.set else {}
        settings = command.settings(Settings, asked, seed=seed, begins=shared)
        tell(prepare(found, asked.checkpoint, asked.tokenizer_path, asked.output.absolute(), settings, others))
        return Path(asked.output)

    return command.exit_status(work)


def parser() -> argparse.ArgumentParser:
    made = command.parser("prepare_spans.py", DESCRIPTION, EXAMPLES)
    _text(made.add_argument_group("questions"))
    _pieces(made.add_argument_group("windows"))
    made.add_argument("--dry-run", action="store_true", help="list the files, write nothing")
    return made


def _text(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--version", choices=("1.1", "2.0"), default="1.1", help="2.0: questions may have no answer (1.1)")
    told = "a lone json, split by article: of ten parts two to be answered; or a folder with train and dev, as "
    told += "train.json or train-v1.1.json, plain or .gz"
    add("--text", type=Path, metavar="FILE|FOLDER", help=told)
    add("--seed", type=int, metavar="N", help="of the parts of a lone file (1)")
    add("--train", type=Path, metavar="FILE", help="instead of --text")
    told = "to be answered, with all answers that it has (valid); several have names"
    add("--eval", action="append", default=[], metavar="[NAME=]FILE", help=told)
    add("--set", choices=list(SETS), help="XTREME's, of --data: an --eval of each language's file, by its code")
    add("--data", type=Path, metavar="FOLDER", help="with the files of --set as published, plain or .gz")
    add("--languages", metavar="A,B", help="of --set and --without: those that have to be there (all that are there)")
    add("--output", type=Path, required=True, metavar="DIR")
    add("--bad", choices=HOW, default="refuse", help="questions that cannot be used as they are (refuse)")
    add("--limit", type=at_least(1), default=0, metavar="N", help="the first questions of training")
    add("--limit-eval", type=at_least(1), default=0, metavar="N", help="the first questions of each --eval")
    told = "of XTREME's set in FOLDER no question is in any split, by its id: nothing is chosen by what is scored there"
    add("--without", action="append", default=[], metavar="SET=FOLDER", help=told)


def _pieces(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--checkpoint", type=Path, required=True, metavar="MODEL", help="of fairseq's, or a Hugging Face folder")
    told = f"of the model's tokenizer, or {', '.join(WORDS)} ({AUTO}: what lies beside the model's dict.txt)"
    add("--tokenizer-path", default=AUTO, metavar="PATH", help=told)
    add("--longest", type=at_least(1), default=384, metavar="N", help="pieces of a window, with the question (384)")
    add("--stride", type=at_least(1), default=128, metavar="N", help="pieces from a window to the next (128)")
    add("--longest-question", type=at_least(1), default=64, metavar="N", help="the rest is cut off, and counted (64)")
    add("--separators", type=int, choices=(1, 2), default=2, help="</s> in between: 2 as RoBERTa, 1 as BERT (2)")


def files(made: argparse.ArgumentParser, asked: argparse.Namespace) -> dict[str, Path]:
    """Return the files by split, with `TRAIN` first, or {'': --text} for a single file.

    Raises:
        CorpusError: See `sets.find` and `splits.find`.
    """
    if asked.text and (asked.train or asked.eval or asked.set):
        made.error("--text, or --train and --eval or --set")
    if bool(asked.set) != bool(asked.data) or (asked.languages is not None and not (asked.set or asked.without)):
        made.error("--set, --data and --languages go together")
    if asked.seed is not None and (not asked.text or asked.text.is_dir()):
        made.error("--seed is for the split of a lone --text: nothing else is drawn")
    if asked.text:
        return _own(asked.text, asked.version)
    found = {TRAIN: asked.train} if asked.train else {}
    for word in asked.eval:
        name, equals, path = word.partition("=")
        name, path = (name, path) if equals else ("valid", word)
        if not re.fullmatch(r"[\w.-]+", name) or name in found:
            made.error(f"--eval {word}: NAME=FILE with a name of its own, of letters, digits, '.', '-' and '_'")
        found[name] = Path(path)
    if asked.set:
        found |= _languages(asked)
    if not found:
        made.error("--text, --train, --eval or --set is wanted")
    for split, path in found.items():
        if split != TRAIN and asked.train and path.resolve() == asked.train.resolve():
            made.error(f"--train and {split} are the same file, {path}: what is trained on cannot be what is answered")
    return found


def _own(text: Path, version: str) -> dict[str, Path]:
    """Return the files of --text; in a folder, those of this version, under their published or usual names."""
    names = ("{}.json", f"{{}}-v{version}.json")
    return splits.find(text, names, FLAGS) if text.is_dir() else {"": text}


def _languages(asked: argparse.Namespace) -> dict[str, Path]:
    """Return the files of --set by language, and print which languages have none."""
    found = find(asked.data, asked.set, _chosen(asked))
    missing = [] if asked.languages else absent(asked.set, found)
    if missing:
        print(f"{asked.set}: no file of {', '.join(missing)} in {asked.data}", flush=True)
    return found


def apart(made: argparse.ArgumentParser, asked: argparse.Namespace) -> list[Path]:
    """Return the files of --without.

    Raises:
        CorpusError: See `sets.find`.
    """
    found = list[Path]()
    for word in asked.without:
        name, _, folder = word.partition("=")
        if name not in SETS or not folder:
            made.error(f"--without {word}: SET=FOLDER is wanted, with a SET of {', '.join(SETS)}")
        chosen = [one for one in _chosen(asked) if one in SETS[name].languages]
        found += find(Path(folder), name, chosen).values()
    return [*dict.fromkeys(found)]  # a file of several languages counts once


def _chosen(asked: argparse.Namespace) -> list[str]:
    return [one for one in (asked.languages or "").split(",") if one]


def tell(record: dict[str, Any]) -> None:
    """Print the counts of the prepared folder."""
    for split, facts in record["splits"].items():
        print(
            f"{split}: {facts['questions']:,} of {facts['given']:,} questions in {facts['windows']:,} windows of up to "
            f"{record['longest']} pieces, {facts['in several windows']:,} in several; {facts['without answer']:,} have "
            f"no answer; {facts['unknown pieces']:,} of {facts['pieces']:,} pieces are unknown"
        )
        answered = facts["questions"] - facts["without answer"]
        if answered:
            back = facts["answers given back"]
            print(f"{split}: {back:,} of {answered:,} answers come back from their pieces as they were")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
