"""Look up the BLEU in Table 4 of the DIET paper, and list how a run differs from the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipes.lib.departures import changed
from recipes.lib.encodings import Either, published
from recipes.lib.package import figures
from recipes.lib.settings import read_preset
from recipes.lib.stages import read_json

from .settings import CONF, RECORD, WMT18, Settings

TEXT = {"train": {"europarl-v7", "commoncrawl", "news-commentary-v13"}, "test": {"newstest2018"}}
#: Default options of prepare_wmt18.sh.
CLEANING = {
    "longest_words": 250,
    "ratio": 2.0,
    "identical": "keep",
    "duplicates": "drop",
    "language_id": False,
    "limit": 0,
}
PRESET = CONF / "table4-vaswani.toml"  # the paper's settings; those that it does not state are tensor2tensor's
UPDATES = ("max-update", "max-epoch", "patience", "stop-time-hours", "stop-min-lr")


def paper(encoding: Either, direction: str) -> float | None:
    """Return the BLEU that the paper reports, or None if the paper reports none."""
    return published(figures("DIET", table="Table 4", column=direction), encoding)


def papers_text(settings: Settings) -> bool:
    """Return whether the run uses the whole text of WMT18.

    The recipe must prepare the text itself, or prepare_wmt18.sh must have prepared it with the same sources and
    options. No option of the run may leave out pairs.
    """
    if settings.limit or settings.train_longest_words or settings.longest != 256:
        return False
    if settings.corpus == WMT18:
        return True
    path = Path(settings.corpus) / RECORD
    if not path.is_file() or (settings.train_set, settings.sets["test"]) != ("train", "test"):
        return False
    record: dict[str, Any] = read_json(path)
    options: dict[str, Any] = record.get("identity", {}).get("options", {})
    cleaned = all(options.get(name, value) == value for name, value in CLEANING.items())
    sources = record.get("sources", [])
    # the name of a corpus ends before the pair: `europarl-v7.de-en`
    names = {split: {row["name"].partition(".")[0] for row in sources if row["split"] == split} for split in TEXT}
    return names == TEXT and cleaned


def differences(settings: Settings) -> list[str]:
    """Return the differences between a run and the paper: in text, model, updates, training or decoding.

    For settings that the paper does not state, the run is compared with the preset. An empty list means that the run's
    BLEU can be compared with the paper's BLEU.
    """
    preset = read_preset(PRESET)
    train = changed(preset["train"], settings.train, intervals=True)  # they decide which checkpoints are averaged
    batch = preset["batches"] * preset["train"]["max-tokens"]
    departs = {
        "text": not papers_text(settings),
        "model": settings.arch != preset["arch"],
        "updates": bool(train.intersection(UPDATES)),
        "training": bool(train.difference(UPDATES)) or settings.batches * settings.number("max-tokens", 0) != batch,
        "decoding": bool(changed(preset["generate"], settings.generate)),
    }
    return [name for name, whether in departs.items() if whether]
