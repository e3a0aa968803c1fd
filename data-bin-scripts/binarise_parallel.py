#!/usr/bin/env python3
"""Binarise the output folder of prepare_parallel.py for fairseq-train.

The program learns subwords on the training text, applies them to all splits as the translation recipe does, and runs
fairseq-preprocess. The output folder holds fairseq's files, the subword model and corpus.json. The translation recipe
does all this itself with --corpus DIR; this program is for training with other tools.
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
    options = parser().parse_args(arguments)

    def work() -> Path:
        binarise(options.text, options.output.absolute(), subword_options(options), options.workers)
        return Path(options.output)

    return command.exit_status(work, command.RESUME)


def parser() -> argparse.ArgumentParser:
    # Abbreviations are off, because --longest would also match --longest-words of prepare_parallel.py.
    parser = command.parser("binarise_parallel.py", __doc__ or "", EXAMPLES, allow_abbrev=False)
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="DIR", help="Output folder of prepare_parallel.py.")
    add("--output", type=Path, required=True, metavar="DIR", help="Folder to write.")
    text = "SentencePiece on raw text, or fastBPE on text that Moses has tokenised (default: sentencepiece)."
    add("--subwords", choices=("sentencepiece", "fastbpe"), default="sentencepiece", help=text)
    text = "Type of the SentencePiece model (default: unigram)."
    add("--model-type", choices=("unigram", "bpe"), help=text)
    text = "Learn one vocabulary for each language instead of a joint one for both languages."
    add("--separate", action="store_true", help=text)
    text = "Fraction of the characters in the text that SentencePiece must cover, from 0.98 to 1 (default: 1). "
    text += "In web text, a lower value keeps rare characters from taking the place of longer pieces."
    add("--character-coverage", type=float, default=1.0, metavar="P", help=text)
    text = "Number of subwords in each vocabulary (default: 32000)."
    add("--vocabulary", type=int, default=32000, metavar="N", help=text)
    text = "Maximum number of subwords in a sentence; longer training pairs are left out (default: 256)."
    add("--longest", type=int, default=256, metavar="N", help=text)
    text = "Number of processes (default: 1). The result does not depend on it."
    add("--workers", type=int, default=1, metavar="N", help=text)
    return parser


def subword_options(options: argparse.Namespace) -> dict[str, object]:
    """Return the options for recipes/lib/translation/subwords.py, which leaves over-long training pairs out.

    Raises:
        CorpusError: Options contradict each other, or a number is out of range.
    """
    coverage, only = options.character_coverage, "only SentencePiece has this option. Leave it out with fastbpe."
    if options.model_type and options.subwords != "sentencepiece":
        raise CorpusError(f"--model-type {options.model_type}: {only}")
    if coverage != 1 and options.subwords != "sentencepiece":
        raise CorpusError(f"--character-coverage {coverage:g}: {only}")
    if not 0.98 <= coverage <= 1:
        raise CorpusError(f"--character-coverage {coverage:g}: the value must be between 0.98 and 1.")
    for name in ("vocabulary", "longest", "workers"):
        if getattr(options, name) < 1:
            raise CorpusError(f"--{name} {getattr(options, name)}: the value must be at least 1.")
    return {
        "kind": options.subwords,
        "model_type": options.model_type or "unigram",
        "separate": options.separate,
        "vocabulary": options.vocabulary,
        "longest": options.longest,
        "bad_lines": "drop",
    } | ({} if coverage == 1 else {"character_coverage": coverage})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
