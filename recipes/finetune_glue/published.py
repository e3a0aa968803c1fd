"""The papers' figures for GLUE, development sets, in percent (METHODS.md 6.A, 6.B, 6.D)."""

from __future__ import annotations

from collections.abc import Mapping

from recipes.lib.encodings import Encoding, published

MISMATCHED = "MNLI-mm"
#: of the protocol m4m: roberta-base as it is, and models that went on from it, on more text
ROBERTA, WARM = "m4m, roberta-base", "m4m, from roberta-base"
_OF_ROBERTA = ("MNLI", MISMATCHED, "QQP", "QNLI", "SST-2", "CoLA", "STS-B", "MRPC", "RTE")
#: what a row of each paper's table has, in its order; of MNLI both development sets
COLUMNS = {
    "m1-m4": ("MNLI", MISMATCHED, "QQP", "SST-2", "MRPC"),
    "m4m": ("MNLI", "SST-2"),
    ROBERTA: _OF_ROBERTA,
    WARM: _OF_ROBERTA,
    "diet-xtreme": ("XNLI",),
    "diet": ("MNLI", MISMATCHED, "QQP", "QNLI", "SST-2", "CoLA", "STS-B"),
}
Rows = Mapping[str, tuple[float, ...]]
UNSET = {"rank": 64}  # D, of 768 numbers and 12 heads
UNSET_ENGLISH = {**UNSET, "slots": 32}  # n / 4: DIET's English models have n = 128

_M4 = (84.45, 84.51, 87.41, 91.74, 88.88)
M1_M4: Rows = {
    "learned": (83.57, 83.65, 87.64, 90.48, 88.40),
    "shaw": (84.10, 84.07, 87.77, 90.94, 88.68),
    "m1": (83.84, 84.06, 87.52, 91.97, 88.65),
    "m2": (83.68, 83.78, 87.50, 91.05, 87.34),
    "m3": (84.81, 84.68, 87.11, 91.39, 82.86),
    "m4": _M4,
    "m4[clip=512]": _M4,  # as the paper's sweep of k calls it: n = 512, nothing is clipped
}
#: from scratch, with the ablations of M4: scale factor, heads not shared, reset
M4M: Rows = {
    "learned": (81.25, 90.25),
    "shaw": (82.88, 91.28),
    "m2": (82.41, 90.36),
    "m4": (83.05, 91.05),
    "deberta": (83.67, 90.71),
    "m4m": (83.58, 91.62),
    "m4[reset=vector]": (82.30, 91.39),
    "learned+m4m": (83.19, 91.16),
    "m4[scale=1]": (83.05, 91.05),
    "m4[scale=2]": (82.80, 91.97),
    "m4[scale=3]": (82.86, 91.51),
    "m4[scale=4]": (82.58, 91.28),
    "m4[scale=6]": (82.71, 90.71),
    "m4[scale=9]": (82.34, 90.36),
    "m4[share=none]": (82.88, 91.17),
}
M4M_ROBERTA: Rows = {"learned": (87.32, 87.31, 88.33, 92.84, 93.92, 55.33, 90.33, 91.42, 71.84)}
M4M_WARM: Rows = {
    "learned": (87.35, 86.99, 88.29, 92.78, 93.92, 52.77, 89.07, 89.67, 72.92),
    "m4m": (87.82, 87.59, 88.28, 92.98, 94.26, 47.02, 89.45, 91.63, 68.59),
}
#: Raffel's row is T5's: buckets, and a scalar a head, undivided (METHODS.md 2.7); the registry's raffel is M4M's
DIET_INPUT: Rows = {
    "learned": (85.8, 85.9, 91.1, 89.9, 93.2, 58.7, 89.0),
    "shaw": (86.3, 86.0, 91.2, 90.5, 93.2, 59.8, 89.3),
    "t5": (86.4, 86.2, 91.2, 90.1, 93.0, 59.6, 90.1),
    "tupe": (86.1, 86.2, 91.2, 90.3, 93.1, 59.6, 89.6),
    "diet-rel": (86.0, 86.1, 91.0, 89.8, 92.8, 59.6, 89.0),
    "diet-abs[rank=64,share=none]": (86.1, 85.8, 91.2, 90.0, 93.0, 58.9, 89.9),
    "learned+linformer[slots=32]": (82.3, 82.6, 90.2, 86.3, 91.4, 53.9, 87.6),
    "diet-abs-lin[slots=32]": (83.0, 83.1, 90.6, 86.7, 92.0, 55.7, 87.6),
}
DIET_HEAD: Rows = {
    "diet-rel": (86.3, 86.3, 91.0, 90.5, 92.9, 60.3, 89.3),
    "diet-rel[share=layer-wise]": (86.5, 86.3, 91.1, 90.0, 93.0, 58.8, 89.6),
    "diet-rel[share=head-wise]": (85.8, 85.7, 91.2, 90.2, 92.8, 59.8, 89.1),
    "diet-abs[rank=64,share=none]": (86.1, 86.1, 91.2, 90.2, 93.0, 58.9, 89.8),
    "diet-abs[rank=64,share=layer-wise]": (86.0, 86.8, 91.1, 90.4, 92.9, 59.3, 89.8),
    "diet-abs[rank=128,share=none]": (86.7, 86.5, 91.2, 90.6, 92.8, 60.1, 89.4),
    "diet-abs[rank=128,share=layer-wise]": (86.4, 86.4, 90.8, 89.5, 93.0, 59.8, 90.2),
}

#: zero-shot XNLI, from English
XTREME_INPUT: Rows = {
    "learned": (67.0,),
    "shaw": (67.9,),
    "t5": (68.5,),
    "tupe": (67.8,),
    "diet-rel": (68.0,),
    "diet-rel[share=head-wise]": (67.7,),
    "diet-rel[share=layer-wise]": (68.0,),
    "diet-abs[rank=64,share=none]": (68.0,),
    "diet-abs[rank=64,share=layer-wise]": (68.0,),
    "learned+linformer[slots=256]": (63.6,),
    "diet-abs-lin[slots=256]": (64.4,),
}
XTREME_HEAD: Rows = {
    "diet-rel": (68.4,),
    "diet-rel[share=head-wise]": (67.8,),
    "diet-rel[share=layer-wise]": (68.1,),
    "diet-abs[rank=64,share=none]": (67.9,),
    "diet-abs[rank=128,share=none]": (68.1,),
    "diet-abs[rank=512,share=none]": (68.5,),
    "diet-abs[rank=64,share=layer-wise]": (68.4,),
    "diet-abs[rank=128,share=layer-wise]": (68.5,),
    "diet-abs[rank=256,share=layer-wise]": (68.4,),
    "diet-abs[rank=512,share=layer-wise]": (67.8,),
}


def paper(protocol: str, encoding: Encoding | None, segments: str) -> dict[str, float]:
    """The figures of a paper's row by task, and of MNLI's other development set; empty where it has no such row.

    Args:
        protocol: m1-m4, m4m, diet, diet-xtreme, `ROBERTA` or `WARM`. segments: none, input, head.
    """
    tables = {
        ("m1-m4", "none"): M1_M4,
        ("m4m", "none"): M4M,
        (ROBERTA, "none"): M4M_ROBERTA,
        (WARM, "none"): M4M_WARM,
        ("diet", "input"): DIET_INPUT,
        ("diet", "head"): DIET_HEAD,
        ("diet-xtreme", "input"): XTREME_INPUT,
        ("diet-xtreme", "head"): XTREME_HEAD,
    }
    unset = UNSET_ENGLISH if protocol == "diet" else UNSET
    found = published(tables.get((protocol, segments), {}), encoding, unset) if encoding else None
    return dict(zip(COLUMNS[protocol], found, strict=True)) if found else {}
