"""Look up the scores that the papers report for GLUE's development sets and for XNLI, in percent."""

from __future__ import annotations

from recipes.lib.encodings import Encoding, published
from recipes.lib.package import PRETRAINED, figures

MISMATCHED = "MNLI-mm"
#: More rows of the M4M paper: roberta-base itself, and models that continued its pretraining on more text.
ROBERTA, WARM = "m4m, roberta-base", "m4m, from roberta-base"
#: Another row of the M1-M4 paper: BERT as published, on the test sets.
BERT = "m1-m4, BERT"
#: The paper of each protocol and the name of its models in the tables of the package.
MODELS = {
    "m1-m4": ("M1-M4", "BERT-base"),
    BERT: ("M1-M4", "BERT-base (Devlin et al., 2018)"),
    "m4m": ("M4M", "RoBERTa-base"),
    ROBERTA: ("M4M", "roberta-base"),
    WARM: ("M4M", "from roberta-base"),
    "diet": ("DIET", "BERT-base, English"),
    "diet-xtreme": ("DIET", "BERT-base, 100 languages"),
}


def paper(protocol: str, encoding: Encoding | None, segments: str, task: str) -> float | None:
    """Return the score that a paper reports for a task, or None if the paper reports no score.

    Args:
        protocol: A key of `MODELS`, such as m1-m4; it names a paper and a model of this paper.
        encoding: The position encoding of the pretrained model.
        segments: The segment encoding: none, input or head.
        task: Name of a task, or `MISMATCHED`.
    """
    name, model = MODELS[protocol]
    column = "MNLI-m" if task == "MNLI" else task
    return published(figures(name, column=column, model=model, segments=segments), encoding, PRETRAINED)
