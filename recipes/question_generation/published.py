"""ROUGE-L of the paper of LFHC and GCDF for question generation (METHODS.md, 6.C), in percent: SQuAD and CMRC 2018."""

from __future__ import annotations

from recipes.lib.encodings import Encoding, published

#: by --pos-enc of the decoder; of SQuAD by words, of CMRC 2018 by characters
PAPER = {
    "xl": (47.21, 60.33),
    "gcdf": (47.55, 60.63),
    "shaw[clip=2,share=none]": (47.20, 60.12),  # a table a head, as LFHC's: the authors' code
    "shaw[clip=4,share=none]": (47.22, 60.14),
    "shaw[clip=8,share=none]": (47.26, 60.09),
    "lfhc[clip=2]": (47.42, 60.33),
    "lfhc[clip=4]": (47.32, 60.19),
    "lfhc[clip=8]": (47.28, 60.21),
    "diet-rel[clip=50]": (47.14, 60.06),  # its T5: a scalar a distance and head, up to M, not T5's buckets
}


def paper(encoding: Encoding, units: str) -> float | None:
    """The paper's figure; None where it has none, as for text that was tokenised before (Du et al.)."""
    found = published(PAPER, encoding)
    columns = {"words": 0, "characters": 1}
    return found[columns[units]] if found and units in columns else None
