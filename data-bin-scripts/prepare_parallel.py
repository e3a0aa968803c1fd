#!/usr/bin/env python3
"""Prepares parallel text for translation: `prepare_parallel.py --help`. The parts: `parallel/`."""

from __future__ import annotations

import sys

from corpora.errors import CorpusError
from parallel import options
from parallel.pipeline import prepare


def main(arguments: list[str]) -> int:
    asked = options.parser().parse_args(arguments)
    try:
        sources = options.listed(asked)
        if asked.dry_run:
            for source in sources:
                print(source.split, source.name, *source.files, sep="\t")
            return 0
        if prepare(sources, asked.output.absolute(), options.settings(asked), asked.workers):
            print((asked.output / "report.md").read_text(encoding="utf-8"))
    except (CorpusError, OSError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run it again to go on from here", file=sys.stderr)
        return 130
    print(f"{asked.output} is there", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
