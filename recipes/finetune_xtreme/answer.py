"""Answers of one fine-tuned model to the questions of several languages: a folder each, as predict.py of SQuAD has it.

python -m recipes.finetune_xtreme.answer --checkpoint MODEL --data data-bin/xquad --output predictions
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from fairseq_posenc.data import spans
from fairseq_posenc.data.span_search import Search
from recipes.finetune_squad import predict
from recipes.lib.folders import whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    predict.common(parser)
    parser.add_argument("--output", type=Path, required=True, help="folder of a folder each")
    asked = parser.parse_args()
    gpu = torch.cuda.is_available() and not asked.cpu
    model, task = predict.load(asked.checkpoint, asked.data, gpu=gpu)
    how = Search(asked.n_best, asked.longest_answer)
    with whole(asked.output) as folder:
        for language in spans.splits(asked.data):
            found = predict.logits(model, task, language, gpu)
            questions = spans.questions(asked.data, language)
            some = dict(predict.answers(asked.data, language, found, how))
            predict.write(folder / language, some, questions, how)
            print(f"{language}: {len(questions):,} questions", flush=True)


if __name__ == "__main__":
    main()
