#!/usr/bin/env python3
"""Prepares text for masked language models: `prepare_corpus.py --help`. The parts: `corpora/`."""

from __future__ import annotations

import sys
from pathlib import Path

from corpora import options
from corpora.errors import GOES_ON, exit_status
from corpora.files import Source, listed
from corpora.pipeline import prepare


def main(arguments: list[str]) -> int:
    parser = options.parser()
    asked = parser.parse_args(arguments)
    options.check(parser, asked)

    def work() -> Path | None:
        sources = listed(asked.train, asked.valid, asked.language, asked.documents, languages=asked.languages)
        if asked.dry_run:
            show(sources)
            return None
        output = asked.output.absolute()
        own = asked.tokenizer_path and asked.tokenizer_path.absolute()
        prepare(sources, output, options.settings(asked), own, options.machines(asked))
        return Path(asked.output)

    return exit_status(work, GOES_ON)


def show(sources: list[Source]) -> None:
    for source in sources:
        print(source.split, source.language, source.documents, source.path, sep="\t")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
