"""BLEU of the DIET paper's Table 4 (METHODS.md, 6.D), and what keeps a run from being compared with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipes.lib.encodings import Either, published
from recipes.lib.stages import read_json

from .settings import MADE, WMT18, Settings

DIRECTIONS = ("en-de", "de-en", "en-cs", "cs-en")
#: by --pos-enc; newstest2018, sacreBLEU's defaults
PAPER = {
    "sinusoidal": (39.00, 38.42, 18.55, 22.93),
    "shaw[clip=20,values=true]": (40.10, 38.90, 18.74, 23.89),  # its options not stated: tensor2tensor's
    "diet-rel": (39.47, 38.49, 18.68, 23.93),
}
UPDATES = 250_000
TEXT = {"train": {"europarl-v7", "commoncrawl", "news-commentary-v13"}, "test": {"newstest2018"}}
#: the paper's decoding; tensor2tensor's length penalty is GNMT's
DECODING = {"beam": 10, "lenpen": 0.6, "lenpen-form": "gnmt"}


def paper(encoding: Either, direction: str) -> float | None:
    """The paper's figure; None where it has none."""
    found = published(PAPER, encoding)
    return dict(zip(DIRECTIONS, found, strict=True)).get(direction) if found else None


def papers_text(settings: Settings) -> bool:
    """WMT18, whole, prepared by the recipe or before: what prepare_wmt18.sh made says of what."""
    if settings.limit or settings.train_longest_words:
        return False
    if settings.corpus == WMT18:
        return True
    made = Path(settings.corpus) / MADE
    if not made.is_file() or (settings.train_set, settings.sets["test"]) != ("train", "test"):
        return False
    record: dict[str, Any] = read_json(made)
    limit = record.get("identity", {}).get("options", {}).get("limit")
    sources = record.get("sources", [])
    # `europarl-v7.de-en`: the pair is no part of the corpus's name
    named = {split: {one["name"].partition(".")[0] for one in sources if one["split"] == split} for split in TEXT}
    return named == TEXT and not limit


def differences(settings: Settings) -> list[str]:
    """In what a run departs from the paper's, so far as that is stated; empty: BLEU can be put beside."""
    departs = {
        "text": not papers_text(settings),
        "model": settings.arch != "posenc_transformer_wmt_en_de",
        "updates": settings.train.get("max-update") != UPDATES,
        "decoding": any(settings.generate.get(name) != value for name, value in DECODING.items()),
    }
    return [name for name, whether in departs.items() if whether]
