"""Answer questions in several languages with one fine-tuned model, and write a folder of predictions for each language.

Each folder has the same files as the output of recipes.lib.finetuning.questions.predict.

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
    text = "Folder for the predictions, with a subfolder for each language."
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help=text)
    arguments = parser.parse_args()
    model = Answering(arguments)
    with whole_folder(arguments.output) as folder:
        for language in spans.splits(arguments.data):
            print(f"{language}: {model.write(folder / language, language):,} questions answered", flush=True)


if __name__ == "__main__":
    main()
