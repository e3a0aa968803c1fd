"""ROUGE-L of the paper of LFHC and GCDF for question generation (METHODS.md, 6.C), in percent: SQuAD and CMRC 2018."""

from __future__ import annotations

from recipes.lib.encodings import Encoding

#: by --pos-enc of the decoder; of SQuAD by words, of CMRC 2018 by characters
PAPER = {
    "xl": (47.21, 60.33),
    "gcdf": (47.55, 60.63),
    "shaw[clip=2]": (47.20, 60.12),
    "shaw[clip=4]": (47.22, 60.14),
    "shaw[clip=8]": (47.26, 60.09),
    "lfhc[clip=2]": (47.42, 60.33),
    "lfhc[clip=4]": (47.32, 60.19),
    "lfhc[clip=8]": (47.28, 60.21),
}
#: what the paper calls T5 is a scalar a distance and head, up to M: `diet-rel` with a clip, not T5's buckets
PAPERS_T5 = (47.14, 60.06)


def paper(encoding: Encoding, units: str) -> float | None:
    """The paper's figure; None where it has none, as for text that was tokenised before (Du et al.)."""
    found = PAPER.get(encoding.label)
    if encoding.name == "diet-rel" and "clip=" in encoding.args:
        found = PAPERS_T5
    columns = {"words": 0, "characters": 1}
    return found[columns[units]] if found and units in columns else None
