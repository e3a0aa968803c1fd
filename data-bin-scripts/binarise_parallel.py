#!/usr/bin/env python3
"""Binarise a folder of prepare_parallel.py for fairseq-train.

The program learns subwords on the training text, applies them to all splits as the translation recipe does, and runs
fairseq-preprocess. OUTPUT holds fairseq's files, the subword model and corpus.json. The recipe does all this itself
with --corpus FOLDER; this program is for training with other tools.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import command
from corpora.errors import CorpusError
from parallel.binarise import binarise

EXAMPLES = """\
examples:
  binarise_parallel.py --text data/wmt18.en-de --output data-bin/wmt18.en-de --workers 8
  binarise_parallel.py --text data/mine --output data-bin/mine --subwords fastbpe --separate --vocabulary 10000
"""


def main(arguments: list[str]) -> int:
    asked = parser().parse_args(arguments)

    def work() -> Path:
        binarise(asked.text, asked.output.absolute(), options(asked), asked.workers)
        return Path(asked.output)

    return command.exit_status(work, command.GOES_ON)


def parser() -> argparse.ArgumentParser:
    # no abbreviations: prepare_parallel.py has --longest-words, which --longest would also match
    made = command.parser("binarise_parallel.py", __doc__ or "", EXAMPLES, allow_abbrev=False)
    add = made.add_argument
    add("--text", type=Path, required=True, metavar="FOLDER", help="what prepare_parallel.py left")
    add("--output", type=Path, required=True, metavar="DIR")
    kinds, told = ("sentencepiece", "fastbpe"), "of raw text, or of Moses' words (sentencepiece)"
    add("--subwords", choices=kinds, default="sentencepiece", help=told)
    add("--model-type", choices=("unigram", "bpe"), help="of SentencePiece (unigram)")
    add("--separate", action="store_true", help="a vocabulary a language, not one for both")
    told = "part of the text's characters that get a piece, by SentencePiece (1); the rare ones of a crawl take the "
    told += "place of longer pieces"
    add("--character-coverage", type=float, default=1.0, metavar="P", help=told)
    add("--vocabulary", type=int, default=32000, metavar="N", help="subwords of a vocabulary (32000)")
    add("--longest", type=int, default=256, metavar="N", help="pieces of a sentence of training (256)")
    add("--workers", type=int, default=1, metavar="N", help="processes (1); they change no byte")
    return made


def options(asked: argparse.Namespace) -> dict[str, object]:
    """Return the options of recipes/lib/translation/subwords.py; over-long training pairs are left out and counted.

    Raises:
        CorpusError: Options contradict each other, or a number is out of range.
    """
    if asked.model_type and asked.subwords != "sentencepiece":
        raise CorpusError(f"--model-type {asked.model_type} is of SentencePiece: leave it out with --subwords fastbpe")
    if asked.character_coverage != 1 and asked.subwords != "sentencepiece":
        raise CorpusError("--character-coverage is of SentencePiece: leave it out with --subwords fastbpe")
    if not 0.98 <= asked.character_coverage <= 1:
        raise CorpusError(f"--character-coverage is {asked.character_coverage:g}: 0.98 to 1 is wanted")
    for name in ("vocabulary", "longest", "workers"):
        if getattr(asked, name) < 1:
            raise CorpusError(f"--{name} is {getattr(asked, name)}: 1 or more is wanted")
    return {
        "kind": asked.subwords,
        "model_type": asked.model_type or "unigram",
        "separate": asked.separate,
        "vocabulary": asked.vocabulary,
        "longest": asked.longest,
        "bad_lines": "drop",
    } | ({} if asked.character_coverage == 1 else {"character_coverage": asked.character_coverage})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
