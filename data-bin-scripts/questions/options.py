"""The command line of prepare_questions.py."""

from __future__ import annotations

import argparse
from pathlib import Path

from corpora.numbers import at_least

from .items import Shape
from .pipeline import AUTO, Settings
from .problems import HOW
from .reading import is_json
from .splits import Files, find

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


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="prepare_questions.py",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _text(made.add_argument_group("questions"))
    _pieces(made.add_argument_group("pieces"))
    made.add_argument("--workers", type=at_least(1), default=1, metavar="N", help="processes (1)")
    made.add_argument("--dry-run", action="store_true", help="list the files, write nothing")
    return made


def _text(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--text",
        type=Path,
        metavar="FOLDER|FILE",
        help="with {train,valid,test}.json or src-*.txt and tgt-*.txt, test optional; a lone json is split by article, "
        "8:1:1",
    )
    for split in ("train", "valid", "test"):
        group.add_argument(f"--{split}", type=Path, metavar="FILE", help="instead of --text; of src-NAME.txt that one")
    group.add_argument("--output", type=Path, required=True, metavar="DIR")
    group.add_argument("--context", choices=("paragraph", "sentence"), help="all of it, or the answer's sentence")
    group.add_argument(
        "--bad", choices=HOW, default="refuse", help="questions that cannot be used as they are (refuse)"
    )
    group.add_argument(
        "--limit", type=at_least(1), default=0, metavar="N", help="the first questions of train or a FILE"
    )
    group.add_argument("--limit-valid", type=at_least(1), metavar="N", help="the first questions of valid and of test")
    group.add_argument("--seed", type=int, metavar="N", help="of the split of a lone file (1)")


def _pieces(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tokenizer",
        choices=("words", "chars"),
        help="words, or characters with words of other letters whole (words; chars for Chinese)",
    )
    group.add_argument("--tokenizer-path", type=Path, metavar="DIR", help="a Hugging Face folder: its encoder's pieces")
    group.add_argument(
        "--vocabulary", type=at_least(1), metavar="N", help=f"of words or chars ({VOCABULARY:,} at most)"
    )
    group.add_argument("--cased", action="store_true", help="words and chars keep capitals")
    group.add_argument("--language", default=AUTO, metavar="CODE", help="whose sentences they are (auto: en or zh)")
    group.add_argument("--longest", type=at_least(1), default=512, metavar="N", help="pieces of a source (512)")
    group.add_argument("--longest-answer", type=at_least(1), metavar="N", help="of an answer (100)")
    group.add_argument("--longest-question", type=at_least(1), default=50, metavar="N", help="of a question (50)")


def files(made: argparse.ArgumentParser, asked: argparse.Namespace) -> Files:
    """By split.

    Raises:
        CorpusError: see `splits.find`.
    """
    named = {split: getattr(asked, split) for split in ("train", "valid", "test") if getattr(asked, split)}
    if (asked.text is None) == (not named):
        made.error("--text, or --train and --valid, is wanted")
    if named and not {"train", "valid"} <= set(named):
        made.error("--train and --valid go together")
    return named or find(asked.text)


def settings(made: argparse.ArgumentParser, asked: argparse.Namespace, found: Files) -> Settings:
    """Options that contradict each other, or that nothing would come of, end the program."""
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
    shape = Shape(
        longest=asked.longest,
        longest_answer=most,
        longest_question=asked.longest_question,
        context=asked.context or "paragraph",
        language=asked.language,
        bad=asked.bad,
    )
    return Settings(
        shape=shape,
        tokenizer=asked.tokenizer,
        tokenizer_path=asked.tokenizer_path,
        cased=asked.cased,
        vocabulary=asked.vocabulary or VOCABULARY,
        seed=1 if asked.seed is None else asked.seed,
        limit=asked.limit,
        limit_others=asked.limit_valid or 0,
        workers=asked.workers,
    )
