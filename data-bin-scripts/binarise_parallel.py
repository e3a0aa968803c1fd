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
from command import at_least
from parallel.binarise import binarise

EXAMPLES = """\
examples:
  binarise_parallel.py --text data/wmt18.en-de --output data-bin/wmt18.en-de --workers 8
  binarise_parallel.py --text data/mine --output data-bin/mine --subwords fastbpe --separate --vocabulary 10000
"""


#: SentencePiece's own limits
COVERAGE = command.number(float, lambda part: 0.98 <= part <= 1, "a number from 0.98 to 1")


def main(arguments: list[str]) -> int:
    command_line = parser()
    options = command_line.parse_args(arguments)
    if options.subwords != "sentencepiece" and (options.model_type or options.character_coverage != 1):
        command_line.error(
            "--model-type and --character-coverage are only for SentencePiece. Leave these options out with fastbpe."
        )

    def work() -> Path:
        binarise(options.text, options.output.absolute(), subword_options(options), options.workers)
        return Path(options.output)

    return command.exit_status(work, command.RESUME)


def parser() -> argparse.ArgumentParser:
    # Abbreviations are off, because --longest would also match --longest-words of prepare_parallel.py.
    parser = command.parser("binarise_parallel.py", __doc__ or "", EXAMPLES, allow_abbrev=False)
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="DIR", help="Output folder of prepare_parallel.py.")
    add("--output", type=command.data_folder, required=True, metavar="DIR", help="Folder to write.")
    text = "SentencePiece on raw text, or fastBPE on text that Moses has tokenised (default: sentencepiece)."
    add("--subwords", choices=("sentencepiece", "fastbpe"), default="sentencepiece", help=text)
    text = "Type of the SentencePiece model (default: unigram)."
    add("--model-type", choices=("unigram", "bpe"), help=text)
    text = "Learn one vocabulary for each language instead of a joint one for both languages."
    add("--separate", action="store_true", help=text)
    text = "Fraction of the characters in the text that SentencePiece must cover, from 0.98 to 1 (default: 1). "
    text += "In web text, a lower value keeps rare characters from taking the place of longer pieces."
    add("--character-coverage", type=COVERAGE, default=1.0, metavar="P", help=text)
    text = "Number of subwords in each vocabulary (default: 32000)."
    add("--vocabulary", type=at_least(1), default=32000, metavar="N", help=text)
    text = "Maximum number of subwords in a sentence; longer training pairs are left out (default: 256)."
    add("--longest", type=at_least(1), default=256, metavar="N", help=text)
    text = "Number of processes (default: 1). The result does not depend on this number."
    add("--workers", type=at_least(1), default=1, metavar="N", help=text)
    return parser


def subword_options(options: argparse.Namespace) -> dict[str, object]:
    """Return the options for recipes/lib/translation/subwords.py, which leaves over-long training pairs out."""
    return {
        "kind": options.subwords,
        "model_type": options.model_type or "unigram",
        "separate": options.separate,
        "vocabulary": options.vocabulary,
        "longest": options.longest,
        "bad_lines": "drop",
    } | ({} if options.character_coverage == 1 else {"character_coverage": options.character_coverage})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
