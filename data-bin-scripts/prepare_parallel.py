#!/usr/bin/env python3
"""Prepares parallel text for translation: `prepare_parallel.py --help`. The parts: `parallel/`."""

from __future__ import annotations

import sys
from pathlib import Path

from corpora.errors import GOES_ON, exit_status
from parallel import options
from parallel.pipeline import prepare


def main(arguments: list[str]) -> int:
    asked = options.parser().parse_args(arguments)

    def work() -> Path | None:
        if asked.check:
            options.check(asked)
            return None
        sources = options.listed(asked)
        if asked.dry_run:
            for source in sources:
                print(source.split, source.name, *source.files, sep="\t")
            return None
        if prepare(sources, asked.output.absolute(), options.settings(asked), asked.workers):
            print((asked.output / "report.md").read_text(encoding="utf-8"))
        return Path(asked.output)

    return exit_status(work, GOES_ON)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
