#!/usr/bin/env python3
"""Prepare data for question generation; see `prepare_questions.py --help`. `questions/` holds the implementation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import command
from command import at_least
from questions import splits
from questions.items import Shape
from questions.pipeline import AUTO, Settings, prepare
from questions.problems import HOW
from questions.reading import is_json

DESCRIPTION = """\
Prepare question-answering data for training --task posenc_question_generation. The source of an item is the answer
and its context, and the target is the question. Source words that the dictionary lacks get ids of their own, so that a
model can copy them. The input is JSON in the format of SQuAD (1.1, 2.0, CMRC 2018), or sentences in src-*.txt with
questions in tgt-*.txt (Du et al. 2017), plain or .gz. docs/data.md describes the output."""
EXAMPLES = """\
examples:
  prepare_questions.py --text my-questions.json --output data-bin/mine --bad repair
  prepare_questions.py --text nqg/ --output data-bin/nqg
  prepare_questions.py --train train-v1.1.json --valid dev-v1.1.json --output data-bin/squad \\
      --tokenizer-path bert-base-cased --bad repair --workers 8
  prepare_questions.py --train cmrc2018_train.json --valid cmrc2018_dev.json --output data-bin/cmrc --tokenizer chars
"""
VOCABULARY = 20_000


def main(arguments: list[str]) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)

    def work() -> Path | None:
        paths = files(parser, options)
        chosen = settings(parser, options, paths)
        if options.dry_run:
            for split, path in paths.items():
                print(split or "train, valid and test", path, sep="\t")
            return None
        print_counts(prepare(paths, options.output.absolute(), chosen))
        return Path(options.output)

    return command.exit_status(work)


def build_parser() -> argparse.ArgumentParser:
    parser = command.parser("prepare_questions.py", DESCRIPTION, EXAMPLES)
    _text(parser.add_argument_group("questions"))
    _pieces(parser.add_argument_group("tokenizer and lengths"))
    parser.add_argument("--workers", type=at_least(1), default=1, metavar="N", help="Number of processes (default: 1).")
    parser.add_argument("--dry-run", action="store_true", help="List the input files and write nothing.")
    return parser


def _text(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "Folder with {train,valid,test}.json, or with src-*.txt and tgt-*.txt (the test set is optional). "
    text += "A single JSON file is split by article into train, valid and test (8:1:1)."
    add("--text", type=Path, metavar="DIR|FILE", help=text)
    for split in splits.SPLITS:
        text = f"File of the {split} split, instead of --text: a JSON file, or src-NAME.txt (next to tgt-NAME.txt)."
        add(f"--{split}", type=Path, metavar="FILE", help=text)
    add("--output", type=command.data_folder, required=True, metavar="DIR", help="Folder to write.")
    text = (
        "Text in which the model sees the answer: the whole paragraph, or only the answer's sentence (default: "
        "paragraph)."
    )
    add("--context", choices=("paragraph", "sentence"), help=text)
    text = "What to do with bad questions: refuse stops with a list of them, skip leaves them out (default: refuse). "
    text += "repair searches the context for misplaced answers, and cuts long answers and questions."
    add("--bad", choices=HOW, default="refuse", help=text)
    text = "Maximum number of training questions (default: all)."
    add("--limit", type=at_least(1), default=0, metavar="N", help=text)
    text = "Maximum number of questions in each of the validation and test sets (default: all)."
    add("--limit-valid", type=at_least(1), default=0, metavar="N", help=text)
    add("--seed", type=int, metavar="N", help="Random seed for splitting a single file (default: 1).")


def _pieces(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "Split text into words, or into characters (words in Latin letters stay whole). "
    text += "Default: chars for Chinese, otherwise words."
    add("--tokenizer", choices=("words", "chars"), help=text)
    text = "Hugging Face folder of a pretrained encoder, whose subword tokenizer is used instead of --tokenizer."
    add("--tokenizer-path", type=Path, metavar="DIR", help=text)
    text = f"Maximum size of the dictionary of words or characters (default: {VOCABULARY:,})."
    add("--vocabulary", type=at_least(1), metavar="N", help=text)
    add("--cased", action="store_true", help="Do not lowercase the text (for --tokenizer words or chars).")
    text = "Language of the text; with auto, the letters decide between English (en) and Chinese (zh) (default: auto)."
    add("--language", default=AUTO, metavar="CODE", help=text)
    text = "Maximum number of pieces in a source; longer contexts are cut around the answer (default: 512)."
    add("--longest", type=at_least(1), default=512, metavar="N", help=text)
    text = "Maximum number of pieces in an answer; --bad says what to do with longer answers (default: 100)."
    add("--longest-answer", type=at_least(1), metavar="N", help=text)
    text = "Maximum number of pieces in a question; --bad says what to do with longer questions (default: 50)."
    add("--longest-question", type=at_least(1), default=50, metavar="N", help=text)


def files(parser: argparse.ArgumentParser, options: argparse.Namespace) -> splits.Files:
    """Return the files by split.

    Raises:
        CorpusError: See `splits.find`.
    """
    named = {split: getattr(options, split) for split in splits.SPLITS if getattr(options, split)}
    if (options.text is None) == (not named):
        parser.error("Give either --text, or --train and --valid.")
    if named and not {"train", "valid"} <= set(named):
        parser.error("--train and --valid are both required without --text.")
    return named or splits.find(options.text)


def settings(parser: argparse.ArgumentParser, options: argparse.Namespace, paths: splits.Files) -> Settings:
    """Return the settings; exit with an error if options contradict each other or have no effect."""
    answers = all(is_json(path) for path in paths.values())
    if options.tokenizer_path and (options.tokenizer or options.vocabulary or options.cased):
        parser.error(
            "--tokenizer, --vocabulary and --cased have no effect with --tokenizer-path. Leave these options out."
        )
    if not answers and (options.context or options.longest_answer):
        parser.error(
            "--context and --longest-answer need answers, which src-*.txt files do not have. Leave these options out."
        )
    if "" not in paths and options.seed is not None:
        parser.error("--seed has an effect only when --text FILE is split. Leave out --seed.")
    longest_answer = options.longest_answer or 100
    if options.longest < (least := longest_answer + 4 if answers else 3):
        text = f"a context after an answer of {longest_answer} pieces" if answers else "a sentence"
        parser.error(f"--longest {options.longest} leaves no room for {text}. Give at least {least}.")
    shape = command.settings(Shape, options, longest_answer=longest_answer, context=options.context or "paragraph")
    seed = 1 if options.seed is None else options.seed
    return command.settings(Settings, options, shape=shape, vocabulary=options.vocabulary or VOCABULARY, seed=seed)


def print_counts(record: dict[str, Any]) -> None:
    """Print the counts of the prepared folder."""
    for split, facts in record["splits"].items():
        print(
            f"{split}: {facts['items']:,} of {facts['given']:,} questions, {facts['sources']:,} different sources, "
            f"{facts['windowed']:,} contexts cut. Pieces outside the dictionary: {facts['source unknown']:,} of "
            f"{facts['source pieces']:,} in sources; {facts['target copied'] + facts['target unknown']:,} of "
            f"{facts['target pieces']:,} in questions ({facts['target copied']:,} of them can be copied)"
        )
    for split, titles in record.get("articles", {}).items():
        print(f"{split}: {len(titles)} articles (seed {record['seed']}): {', '.join(titles)}")
    print(
        f"dictionary: {record['dictionary']:,} symbols ({record['pieces']}). Tokenising and detokenising restore "
        f"{record['round_trip']:.2%} of the training questions"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
