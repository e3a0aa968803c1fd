#!/usr/bin/env python3
"""Prepare text for masked language models; see `prepare_corpus.py --help`. `corpora/` holds the implementation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import command
from command import at_least
from corpora.documents import KINDS
from corpora.files import listed
from corpora.pieces import FILES
from corpora.pipeline import prepare

DESCRIPTION = """\
Prepare text for training masked language models: split it into documents and sentences, tokenise them, and write
shards of fairseq's binary files. After an interruption, run the same command again to continue.
docs/data.md describes the output."""
EXAMPLES = """\
examples:
  prepare_corpus.py --train wiki/ books/ --valid-part 0.005 --output data-bin/books_wiki --tokenizer wordpiece \\
      --vocabulary 30522 --tasks 64 --workers 16
  prepare_corpus.py --train data/train.txt.zst --valid data/valid.txt --output data-bin/own --tokenizer sentencepiece
  prepare_corpus.py --train wiki100/ --valid-part 0.001 --languages --output data-bin/wiki100 \\
      --tokenizer sentencepiece --vocabulary 120000 --tasks 256 --workers 64
"""
#: sizes of the vocabularies that are learned
VOCABULARY = {"gpt2": 0, "sentencepiece": 8000, "wordpiece": 30_000}
PART = command.number(float, lambda part: 0 < part < 1, "a number between 0 and 1")
SMOOTHING = command.number(float, lambda power: 0 <= power <= 1, "a number from 0 (equal shares) to 1 (shares by size)")


def main(arguments: list[str]) -> int:
    options = parse(arguments)

    def work() -> Path | None:
        words = {"train": options.train, "valid": options.valid}
        sources = listed(words, options.language, options.documents, languages=options.languages)
        if options.dry_run:
            for source in sources:
                print(source.split, source.language, source.documents, source.path, sep="\t")
            return None
        prepare(options, sources)
        return Path(options.output)

    return command.exit_status(work, command.RESUME)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = command.parser("prepare_corpus.py", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    text = "Training files or folders. KIND:PATH sets the format of one PATH; --documents sets that of the others."
    add("--train", nargs="+", required=True, metavar="FILE|DIR", help=text)
    valid = parser.add_mutually_exclusive_group(required=True)
    valid.add_argument("--valid", nargs="+", default=[], metavar="FILE|DIR", help="Validation files or folders.")
    text = "Move each training document to the validation set with probability P."
    valid.add_argument("--valid-part", type=PART, default=0.0, metavar="P", help=text)
    add("--output", type=command.data_folder, required=True, metavar="DIR", help="Folder to write.")
    text = "Format of the files, which decides where a document begins; auto detects it (default: auto)."
    add("--documents", choices=KINDS, default="auto", help=text)
    text = "Language of the text, for splitting it into sentences (default: en)."
    add("--language", default="en", metavar="CODE", help=text)
    text = "Each DIR contains one folder per language, named by the code of the language."
    add("--languages", action="store_true", help=text)
    text = "With --languages, repeat the text of the smaller languages, so that the share of a language with "
    text += "n pieces is proportional to n**S (default: 0.7)."
    add("--smoothing", type=SMOOTHING, default=0.7, metavar="S", help=text)
    text = "Maximum number of subword pieces in an item; longer sentences become several items (default: 126)."
    add("--longest", type=at_least(1), default=126, metavar="N", help=text)
    add(
        "--limit", type=at_least(1), default=0, metavar="N", help="Maximum number of training documents (default: all)."
    )
    text = "Random seed for the order of documents and all other random choices (default: 1)."
    add("--seed", type=int, default=1, metavar="N", help=text)
    add("--tokenizer", choices=FILES, required=True, help="Type of the tokenizer.")
    text = "Existing tokenizer: a folder with encoder.json, vocab.bpe and dict.txt (gpt2), a vocab.txt (wordpiece), a "
    text += ".model file (sentencepiece), or a folder that import-hf wrote. Without this option, wordpiece and "
    text += "sentencepiece learn a vocabulary from --train."
    add("--tokenizer-path", type=Path, metavar="FILE|DIR", help=text)
    text = "Size of the vocabulary to learn (default: 8000 for sentencepiece, 30000 for wordpiece)."
    add("--vocabulary", type=at_least(1), default=0, metavar="N", help=text)
    text = "When WordPiece is learned, keep capitals and accents. An existing vocab.txt says this itself."
    add("--cased", action="store_true", help=text)
    text = "Divide the work into N tasks, and write N shards (default: 1)."
    add("--tasks", type=at_least(1), default=1, metavar="N", help=text)
    text = "Number of tasks that run at the same time (default: 1). The result does not depend on this number."
    add("--workers", type=at_least(1), default=1, metavar="N", help=text)
    add("--dry-run", action="store_true", help="List the input files and write nothing.")
    options = parser.parse_args(arguments)
    if options.tokenizer == "gpt2" and options.tokenizer_path is None:
        parser.error("--tokenizer gpt2 needs --tokenizer-path DIR, a folder with encoder.json, vocab.bpe and dict.txt.")
    if options.tokenizer_path and options.vocabulary:
        parser.error("--vocabulary is only for learning a tokenizer. Leave it out if you give --tokenizer-path.")
    if options.cased and (options.tokenizer != "wordpiece" or options.tokenizer_path):
        parser.error("--cased is only for learning wordpiece; all other tokenizers know it themselves. Leave it out.")
    options.vocabulary = options.vocabulary or (0 if options.tokenizer_path else VOCABULARY[options.tokenizer])
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
