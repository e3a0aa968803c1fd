#!/usr/bin/env python3
"""Prepare data for extractive question answering; see `prepare_spans.py --help`. `spans/` holds the implementation."""

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
Prepare extractive question answering for --task posenc_squad: tokenise questions and contexts for a pretrained model,
cut contexts into windows, and store the offsets of the pieces in the text. The input is JSON in the format of SQuAD 1.1
or 2.0, plain or .gz."""
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
    parser = build_parser()
    options = parser.parse_args(arguments)

    def work() -> Path | None:
        paths, excluded = files(parser, options), apart(parser, options)
        if options.dry_run:
            for split, path in paths.items():
                print(split or "train and valid", path, sep="\t")
            return None
        seed = 1 if options.seed is None else options.seed
        shared = begins(options.set, paths) if options.set else {}
        settings = command.settings(Settings, options, seed=seed, begins=shared)
        tokenizer, output = options.tokenizer_path, options.output.absolute()
        print_counts(prepare(paths, options.checkpoint, tokenizer, output, settings, excluded))
        return Path(options.output)

    return command.exit_status(work)


def build_parser() -> argparse.ArgumentParser:
    parser = command.parser("prepare_spans.py", DESCRIPTION, EXAMPLES)
    _text(parser.add_argument_group("questions"))
    _pieces(parser.add_argument_group("model and windows"))
    parser.add_argument("--dry-run", action="store_true", help="List the input files and write nothing.")
    return parser


def _text(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "Version of SQuAD's format; in 2.0, questions may have no answer (default: 1.1)."
    add("--version", choices=("1.1", "2.0"), default="1.1", help=text)
    text = "Folder with train.json and dev.json (or train-v1.1.json and so on), or a single JSON file. "
    text += "A single file is split by article into train and valid (8:2)."
    add("--text", type=Path, metavar="FILE|DIR", help=text)
    add("--seed", type=int, metavar="N", help="Random seed for splitting a single file (default: 1).")
    add("--train", type=Path, metavar="FILE", help="Training file (not together with --text).")
    text = "Evaluation file, which becomes the split NAME (default: valid). This option can be repeated."
    add("--eval", action="append", default=[], metavar="[NAME=]FILE", help=text)
    text = (
        "XTREME set for evaluation. Its files are in --data, and each language becomes a split that is named by the "
        "language's code."
    )
    add("--set", choices=list(SETS), help=text)
    add("--data", type=Path, metavar="DIR", help="Folder with the published files of --set, plain or .gz.")
    text = "Languages of --set and --without; each must have a file (default: all that have a file)."
    add("--languages", metavar="A,B", help=text)
    add("--output", type=command.data_folder, required=True, metavar="DIR", help="Folder to write.")
    text = "What to do with bad training questions: refuse stops with a list, skip leaves them out (default: refuse). "
    text += "repair searches the context for misplaced answers."
    add("--bad", choices=HOW, default="refuse", help=text)
    text = "Maximum number of training questions (default: all)."
    add("--limit", type=at_least(1), default=0, metavar="N", help=text)
    text = "Maximum number of questions of each evaluation split (default: all)."
    add("--limit-eval", type=at_least(1), default=0, metavar="N", help=text)
    text = "Leave out all questions whose ids occur in the files of the XTREME set SET in DIR, so that you can choose "
    text += "settings on questions that are not in the test set. The option can be repeated."
    add("--without", action="append", default=[], metavar="SET=DIR", help=text)


def _pieces(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "Pretrained model whose vocabulary is used: a fairseq checkpoint or a Hugging Face folder."
    add("--checkpoint", type=Path, required=True, metavar="FILE|DIR", help=text)
    text = f"Tokenizer of the model: a file or folder, or one of {', '.join(WORDS)}. "
    text += f"Default: {AUTO}, the tokenizer next to the model's dict.txt."
    add("--tokenizer-path", default=AUTO, metavar="PATH", help=text)
    text = "Maximum number of pieces in a window, including the question (default: 384)."
    add("--longest", type=at_least(1), default=384, metavar="N", help=text)
    text = "Distance in pieces between the starts of neighbouring windows (default: 128)."
    add("--stride", type=at_least(1), default=128, metavar="N", help=text)
    text = "Maximum number of pieces in a question; longer questions are cut and counted (default: 64)."
    add("--longest-question", type=at_least(1), default=64, metavar="N", help=text)
    text = "Number of </s> between question and context: 2 as in RoBERTa, 1 as in BERT (default: 2)."
    add("--separators", type=int, choices=(1, 2), default=2, help=text)


def files(parser: argparse.ArgumentParser, options: argparse.Namespace) -> dict[str, Path]:
    """Return the files by split, with `TRAIN` first, or {'': --text} for a single file.

    Raises:
        CorpusError: See `sets.find` and `splits.find`.
    """
    if options.text and (options.train or options.eval or options.set):
        parser.error("--text cannot be combined with --train, --eval or --set. Leave out --text or the other options.")
    if bool(options.set) != bool(options.data):
        parser.error("--set and --data must be given together.")
    if options.languages is not None and not (options.set or options.without):
        parser.error("--languages needs --set or --without.")
    if options.seed is not None and (not options.text or options.text.is_dir()):
        parser.error("--seed has an effect only when --text FILE is split. Leave out --seed.")
    if options.text:
        return _own(options.text, options.version)
    paths = {TRAIN: options.train} if options.train else {}
    for word in options.eval:
        name, equals, path = word.partition("=")
        name, path = (name, path) if equals else ("valid", word)
        if not re.fullmatch(r"[\w.-]+", name) or name in paths:
            parser.error(f"--eval {word}: give NAME=FILE with a new name of letters, digits, '.', '-' and '_'.")
        paths[name] = Path(path)
    if options.set:
        paths |= _languages(options)
    if not paths:
        parser.error("Give --text, --train, --eval or --set.")
    for split, path in paths.items():
        if split != TRAIN and options.train and path.resolve() == options.train.resolve():
            parser.error(f"--train and {split} are the same file, {path}. Give another file for evaluation.")
    return paths


def _own(text: Path, version: str) -> dict[str, Path]:
    """Return the files of the folder --text by split, for this version of SQuAD; a single file has the split ''."""
    names = ("{}.json", f"{{}}-v{version}.json")
    return splits.find(text, names, FLAGS) if text.is_dir() else {"": text}


def _languages(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files of --set by language, and print which languages have no file."""
    paths = find(options.data, options.set, _chosen(options))
    missing = [] if options.languages else absent(options.set, paths)
    if missing:
        print(f"{options.set}: {options.data} has no file for {', '.join(missing)}", flush=True)
    return paths


def apart(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[Path]:
    """Return the files of --without.

    Raises:
        CorpusError: See `sets.find`.
    """
    paths = list[Path]()
    for word in options.without:
        name, _, folder = word.partition("=")
        if name not in SETS or not folder:
            parser.error(f"--without {word}: give SET=DIR, where SET is {', '.join(SETS)}.")
        chosen = [code for code in _chosen(options) if code in SETS[name].languages]
        paths += find(Path(folder), name, chosen).values()
    return [*dict.fromkeys(paths)]  # a file of several languages counts once


def _chosen(options: argparse.Namespace) -> list[str]:
    return [code for code in (options.languages or "").split(",") if code]


def print_counts(record: dict[str, Any]) -> None:
    """Print the counts of the prepared folder."""
    for split, facts in record["splits"].items():
        print(
            f"{split}: {facts['questions']:,} of {facts['given']:,} questions in {facts['windows']:,} windows of up to "
            f"{record['longest']} pieces. {facts['in several windows']:,} questions have several windows, and "
            f"{facts['without answer']:,} have no answer. {facts['unknown pieces']:,} of {facts['pieces']:,} pieces "
            "are unknown."
        )
        answered = facts["questions"] - facts["without answer"]
        if answered:
            back = facts["answers given back"]
            what = "the span of subword pieces covers exactly the answer's text"
            print(f"{split}: for {back:,} of {answered:,} answers, {what}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
