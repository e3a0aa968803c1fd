#!/usr/bin/env python3
"""Prepares text for masked language models: `prepare_corpus.py --help`. The parts: `corpora/`."""

from __future__ import annotations

import sys

from corpora import options
from corpora.errors import CorpusError
from corpora.files import Source, listed
from corpora.pipeline import prepare


def main(arguments: list[str]) -> int:
    parser = options.parser()
    asked = parser.parse_args(arguments)
    options.check(parser, asked)
    try:
        sources = listed(asked.train, asked.valid, asked.language, asked.documents, languages=asked.languages)
        if asked.dry_run:
            return show(sources)
        output = asked.output.absolute()
        own = asked.tokenizer_path and asked.tokenizer_path.absolute()
        prepare(sources, output, options.settings(asked), own, options.machines(asked))
    except (CorpusError, OSError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run it again to go on from here", file=sys.stderr)
        return 130
    print(f"{asked.output} is there", flush=True)
    return 0


def show(sources: list[Source]) -> int:
    for source in sources:
        print(source.split, source.language, source.documents, source.path, sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
