"""What the papers print for GLUE's development sets and for XNLI, in percent."""

from __future__ import annotations

from recipes.lib.encodings import Encoding, published
from recipes.lib.package import figures

MISMATCHED = "MNLI-mm"
#: of the protocol m4m: roberta-base as it is, and models that went on from it, on more text
ROBERTA, WARM = "m4m, roberta-base", "m4m, from roberta-base"
#: the paper of each protocol, and its models
MODELS = {
    "m1-m4": ("M1-M4", "BERT-base"),
    "m4m": ("M4M", "RoBERTa-base"),
    ROBERTA: ("M4M", "roberta-base"),
    WARM: ("M4M", "from roberta-base"),
    "diet": ("DIET", "BERT-base, English"),
    "diet-xtreme": ("DIET", "BERT-base, 100 languages"),
}
#: what unset options come to in the papers' models: rank is D, of width 768 and 12 heads; the clip is no less than n
UNSET = {"rank": 64, "clip": 512}
UNSET_ENGLISH = {**UNSET, "slots": 32}  # n / 4: DIET's English models have n = 128


def paper(protocol: str, encoding: Encoding | None, segments: str, task: str) -> float | None:
    """Return a paper's figure; None where it has none.

    Args:
        protocol: m1-m4, m4m, diet, diet-xtreme, `ROBERTA` or `WARM`.
        encoding: the encoding of the pretraining.
        segments: none, input or head.
        task: a task's name or `MISMATCHED`.
    """
    name, model = MODELS[protocol]
    column = "MNLI-m" if task == "MNLI" else task
    unset = UNSET_ENGLISH if protocol == "diet" else UNSET
    return published(figures(name, column=column, model=model, segments=segments), encoding, unset)
