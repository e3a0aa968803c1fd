"""Answer questions with a fine-tuned model and write the files that SQuAD's own scripts read.

python -m recipes.lib.finetuning.questions.predict --checkpoint MODEL --data data-bin/squad-spans --output predictions
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_posenc.data import spans

from .answers import Answering, add_options


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    option = parser.add_argument
    option("--split", default="valid", metavar="NAME", help="Split with the questions to answer (default: valid).")
    option("--output", type=Path, required=True, metavar="DIR", help="Folder for the predictions.")
    text = "For SQuAD 2.0: give the empty answer if it scores more than X above the best span (default: 0)."
    option("--null-threshold", type=float, metavar="X", help=text)
    arguments = parser.parse_args()
    version, threshold = spans.record(arguments.data)["version"], arguments.null_threshold
    if threshold is not None and version != "2.0":
        problem = f"this option is only for SQuAD 2.0, but the questions have version {version}. Leave the option out"
        parser.error(f"--null-threshold {threshold}: {problem}.")
    threshold = (threshold or 0.0) if version == "2.0" else None
    Answering(arguments).write(arguments.output, arguments.split, threshold)


if __name__ == "__main__":
    main()
