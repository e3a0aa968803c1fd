"""ROUGE-L of the paper of LFHC and GCDF for question generation (METHODS.md, 6.C), in percent: SQuAD and CMRC 2018."""

from __future__ import annotations

import re
from typing import Any

from recipes.lib.encodings import Encoding, published

from .settings import CMRC, SQUAD

#: by --pos-enc of the decoder; of SQuAD and of CMRC 2018
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


#: names of their files: train-v1.1.json, dev-v2.0.json, cmrc2018_dev.json, and parts of them
FILES = {SQUAD: re.compile(r".+-v(1\.1|2\.0)(\.\w+)*\.json(\.gz)?"), CMRC: re.compile(r"cmrc2018_\w+\.json(\.gz)?")}


def dataset(record: dict[str, Any]) -> str | None:
    """SQuAD or CMRC, by the names of the files that the record of a prepared folder tells; None of all others."""
    names = [one["name"] for one in record["files"].values()]
    return next((name for name, form in FILES.items() if all(map(form.fullmatch, names))), None)


def paper(encoding: Encoding, of: str | None) -> float | None:
    """The paper's figure on a dataset; None where it has none."""
    found = published(PAPER, encoding)
    columns = {SQUAD: 0, CMRC: 1}
    return found[columns[of]] if found and of in columns else None
