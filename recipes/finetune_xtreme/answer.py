"""Answer questions in several languages with one fine-tuned model, and write a folder of predictions for each language.

A folder has the same files as the output of recipes.finetune_squad.predict.

python -m recipes.finetune_xtreme.answer --checkpoint MODEL --data data-bin/xquad --output predictions
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fairseq_posenc.data import spans
from recipes.lib.finetuning.questions.answers import Answering, add_options
from recipes.lib.package import whole_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--output", type=Path, required=True, help="folder of a folder each")
    asked = parser.parse_args()
    model = Answering(asked)
    with whole_folder(asked.output) as folder:
        for language in spans.splits(asked.data):
            print(f"{language}: {model.write(folder / language, language):,} questions", flush=True)


if __name__ == "__main__":
    main()
