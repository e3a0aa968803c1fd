"""Answer questions with a fine-tuned model and write the files that SQuAD's own scripts read.

python -m recipes.finetune_squad.predict --checkpoint MODEL --data data-bin/squad-spans --output predictions
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_posenc.data import spans
from recipes.lib.finetuning.questions.answers import Answering, add_options


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--output", type=Path, required=True, help="folder of the files")
    parser.add_argument("--null-threshold", type=float, help="of version 2.0 (0)")
    asked = parser.parse_args()
    version = spans.record(asked.data)["version"]
    if asked.null_threshold is not None and version != "2.0":
        parser.error(f"--null-threshold: all questions of version {version} have answers; leave it out")
    threshold = (asked.null_threshold or 0.0) if version == "2.0" else None
    Answering(asked).write(asked.output, asked.split, threshold)


if __name__ == "__main__":
    main()
