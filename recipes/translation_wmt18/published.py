"""BLEU of the DIET paper's Table 4 (METHODS.md, 6.D), and what keeps a run from being compared with it."""

from __future__ import annotations

from recipes.lib.encodings import Either, published

from .settings import WMT18, Settings

DIRECTIONS = ("en-de", "de-en", "en-cs", "cs-en")
#: by --pos-enc; newstest2018, sacreBLEU's defaults
PAPER = {
    "sinusoidal": (39.00, 38.42, 18.55, 22.93),
    "shaw[clip=20,values=true]": (40.10, 38.90, 18.74, 23.89),  # its options not stated: tensor2tensor's
    "diet-rel": (39.47, 38.49, 18.68, 23.93),
}
UPDATES = 250_000
#: the paper's decoding; tensor2tensor's length penalty is GNMT's
DECODING = {"beam": 10, "lenpen": 0.6, "lenpen-form": "gnmt"}


def paper(encoding: Either, direction: str) -> float | None:
    """The paper's figure; None where it has none."""
    found = published(PAPER, encoding)
    return dict(zip(DIRECTIONS, found, strict=True)).get(direction) if found else None


def differences(settings: Settings) -> list[str]:
    """In what a run departs from the paper's, so far as that is stated; empty: BLEU can be put beside."""
    departs = {
        "text": settings.corpus != WMT18 or bool(settings.limit or settings.train_longest_words),
        "model": settings.arch != "posenc_transformer_wmt_en_de",
        "updates": settings.train.get("max-update") != UPDATES,
        "decoding": any(settings.generate.get(name) != value for name, value in DECODING.items()),
    }
    return [name for name, whether in departs.items() if whether]
