#!/usr/bin/env python3
"""Prepares questions for question generation: `prepare_questions.py --help`. The parts: `questions/`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from corpora.errors import exit_status
from questions import options
from questions.pipeline import prepare

sys.path.append(str(Path(__file__).resolve().parents[1]))  # fairseq_posenc, installed or not


def main(arguments: list[str]) -> int:
    parser = options.parser()
    asked = parser.parse_args(arguments)

    def work() -> Path | None:
        files = options.files(parser, asked)
        settings = options.settings(parser, asked, files)
        if asked.dry_run:
            for split, path in files.items():
                print(split or "train, valid and test", path, sep="\t")
            return None
        tell(prepare(files, asked.output.absolute(), settings))
        return Path(asked.output)

    return exit_status(work)


def tell(record: dict[str, Any]) -> None:
    """What is in the folder."""
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
