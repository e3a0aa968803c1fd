#!/usr/bin/env python3
"""Prepare questions for question generation; see `prepare_questions.py --help`. `questions/` implements it."""

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
Makes of questions on texts what --task posenc_question_generation is trained on: pieces of the answer and its context,
and of the question, as fairseq's binary files, with words outside the dictionary numbered so that they can be copied.
SQuAD 1.1 and 2.0, CMRC 2018 and others of that format (json), or sentences and questions line by line (Du et al. 2017:
src-*.txt with tgt-*.txt); plain or .gz. docs/data.md says what lies where afterwards."""
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
    made = parser()
    asked = made.parse_args(arguments)

    def work() -> Path | None:
        found = files(made, asked)
        chosen = settings(made, asked, found)
        if asked.dry_run:
            for split, path in found.items():
                print(split or "train, valid and test", path, sep="\t")
            return None
        tell(prepare(found, asked.output.absolute(), chosen))
        return Path(asked.output)

    return command.exit_status(work)


def parser() -> argparse.ArgumentParser:
    made = command.parser("prepare_questions.py", DESCRIPTION, EXAMPLES)
    _text(made.add_argument_group("questions"))
    _pieces(made.add_argument_group("pieces"))
    made.add_argument("--workers", type=at_least(1), default=1, metavar="N", help="processes (1)")
    made.add_argument("--dry-run", action="store_true", help="list the files, write nothing")
    return made


def _text(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    told = (
        "with {train,valid,test}.json or src-*.txt and tgt-*.txt, test optional; a lone json is split by article, 8:1:1"
    )
    add("--text", type=Path, metavar="FOLDER|FILE", help=told)
    for split in splits.SPLITS:
        add(f"--{split}", type=Path, metavar="FILE", help="instead of --text; of src-NAME.txt that one")
    add("--output", type=Path, required=True, metavar="DIR")
    add("--context", choices=("paragraph", "sentence"), help="all of it, or the answer's sentence")
    add("--bad", choices=HOW, default="refuse", help="questions that cannot be used as they are (refuse)")
    add("--limit", type=at_least(1), default=0, metavar="N", help="the first questions of train or a FILE")
    add("--limit-valid", type=at_least(1), default=0, metavar="N", help="the first questions of valid and of test")
    add("--seed", type=int, metavar="N", help="of the split of a lone file (1)")


def _pieces(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    told = "words, or characters with words of other letters whole (words; chars for Chinese)"
    add("--tokenizer", choices=("words", "chars"), help=told)
    add("--tokenizer-path", type=Path, metavar="DIR", help="a Hugging Face folder: its encoder's pieces")
    add("--vocabulary", type=at_least(1), metavar="N", help=f"of words or chars ({VOCABULARY:,} at most)")
    add("--cased", action="store_true", help="words and chars keep capitals")
    add("--language", default=AUTO, metavar="CODE", help="whose sentences they are (auto: en or zh)")
    add("--longest", type=at_least(1), default=512, metavar="N", help="pieces of a source (512)")
    add("--longest-answer", type=at_least(1), metavar="N", help="of an answer (100)")
    add("--longest-question", type=at_least(1), default=50, metavar="N", help="of a question (50)")


def files(made: argparse.ArgumentParser, asked: argparse.Namespace) -> splits.Files:
    """Return the files by split.

    Raises:
        CorpusError: See `splits.find`.
    """
    named = {split: getattr(asked, split) for split in splits.SPLITS if getattr(asked, split)}
    if (asked.text is None) == (not named):
        made.error("--text, or --train and --valid, is wanted")
    if named and not {"train", "valid"} <= set(named):
        made.error("--train and --valid go together")
    return named or splits.find(asked.text)


def settings(made: argparse.ArgumentParser, asked: argparse.Namespace, found: splits.Files) -> Settings:
    """Return the settings; end the program if options contradict each other, or have no effect."""
    answers = all(is_json(path) for path in found.values())
    if asked.tokenizer_path and (asked.tokenizer or asked.vocabulary or asked.cased):
        made.error("--tokenizer, --vocabulary and --cased are for pieces that are learned, not with --tokenizer-path")
    if not answers and (asked.context or asked.longest_answer):
        made.error("--context and --longest-answer are for json: src-*.txt have no answers")
    if "" not in found and asked.seed is not None:
        made.error("--seed is for the split of a lone file: nothing else is drawn")
    most = asked.longest_answer or 100
    if asked.longest < (most + 4 if answers else 3):
        made.error(f"--longest {asked.longest} leaves no room for a context behind an answer of {most} pieces")
    shape = command.settings(Shape, asked, longest_answer=most, context=asked.context or "paragraph")
    seed = 1 if asked.seed is None else asked.seed
    return command.settings(Settings, asked, shape=shape, vocabulary=asked.vocabulary or VOCABULARY, seed=seed)


def tell(record: dict[str, Any]) -> None:
    """Print the counts of the prepared folder."""
    for split, facts in record["splits"].items():
        print(
            f"{split}: {facts['items']:,} of {facts['given']:,} questions, {facts['sources']:,} sources, "
            f"{facts['windowed']:,} with a part of their context; outside the dictionary are "
            f"{facts['source unknown']:,} of {facts['source pieces']:,} pieces, and of {facts['target pieces']:,} in "
            f"questions {facts['target copied']:,} that can be copied and {facts['target unknown']:,} that cannot"
        )
    for split, titles in record.get("articles", {}).items():
        print(f"{split}, drawn with seed {record['seed']}: {len(titles)} articles: {', '.join(titles)}")
    print(
        f"{record['dictionary']:,} symbols ({record['pieces']}); {record['round_trip']:.2%} of the training questions "
        "come back from their pieces as they were"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
