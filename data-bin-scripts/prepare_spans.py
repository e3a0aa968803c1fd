#!/usr/bin/env python3
"""Prepares questions for fine-tuning on answers in texts: `prepare_spans.py --help`. The parts: `spans/`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from corpora.errors import exit_status
from spans import options
from spans.pipeline import prepare

sys.path.append(str(Path(__file__).resolve().parents[1]))  # fairseq_posenc, installed or not


def main(arguments: list[str]) -> int:
    parser = options.parser()
    asked = parser.parse_args(arguments)

    def work() -> Path | None:
        files, apart = options.files(parser, asked), options.apart(parser, asked)
        if asked.dry_run:
            for split, path in files.items():
                print(split or "train and valid", path, sep="\t")
            return None
        where, how = asked.output.absolute(), options.settings(asked, files)
        tell(prepare(files, asked.checkpoint, asked.tokenizer_path, where, how, apart))
        return Path(asked.output)

    return exit_status(work)


def tell(record: dict[str, Any]) -> None:
    """What is in the folder."""
    for split, facts in record["splits"].items():
        print(
            f"{split}: {facts['questions']:,} of {facts['given']:,} questions in {facts['windows']:,} windows of up to "
            f"{record['longest']} pieces, {facts['in several windows']:,} in several; {facts['without answer']:,} have "
            f"no answer; {facts['unknown pieces']:,} of {facts['pieces']:,} pieces are unknown"
        )
        answered = facts["questions"] - facts["without answer"]
        if answered:
            back = facts["answers given back"]
            print(f"{split}: {back:,} of {answered:,} answers come back from their pieces as they were")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
