"""The DIET paper's figures for questions in other languages than English, in percent (METHODS.md 6.D)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.finetune_glue.published import UNSET
from recipes.finetune_glue.settings import CONF as PROTOCOLS
from recipes.finetune_glue.settings import PROTOCOL
from recipes.lib.departures import of_flags, of_settings
from recipes.lib.encodings import Encoding, published
from recipes.lib.settings import read_preset

if TYPE_CHECKING:
    from .settings import Settings

#: of the paper: its protocol, and how windows are made and answers are found, which it does not state
PAPER = PROTOCOLS / "protocols" / "diet-xtreme.toml"
PRESET = Path(__file__).parent / "conf" / "paper.toml"
WINDOWS = ("stride", "longest_question", "longest_answer")

#: F1 and EM of XQuAD, MLQA and TyDiQA-GoldP, means over their languages
Row = tuple[float, float, float, float, float, float]
TASKS = ("XQuAD", "MLQA", "TyDiQA")
TRAINING = 87_599  # SQuAD 1.1
LAYERS, DIM = 12, 768

INPUT: Mapping[str, Row] = {
    "learned": (66.0, 49.9, 56.2, 41.0, 59.0, 47.9),
    "shaw": (69.5, 53.9, 58.2, 43.1, 64.8, 49.9),
    "t5": (69.9, 53.5, 59.5, 44.3, 63.8, 50.6),
    "tupe": (68.6, 52.0, 58.6, 43.2, 63.9, 48.7),
    "diet-rel": (68.1, 52.8, 57.7, 42.7, 63.3, 50.9),
    "diet-rel[share=head-wise]": (66.2, 51.0, 56.0, 41.1, 60.1, 45.9),
    "diet-rel[share=layer-wise]": (68.6, 53.3, 58.1, 43.1, 61.3, 48.2),
    "diet-abs[rank=64,share=none]": (67.4, 50.5, 57.8, 42.3, 61.3, 46.8),
    "diet-abs[rank=64,share=layer-wise]": (69.3, 53.1, 59.3, 43.9, 63.2, 48.6),
    "learned+linformer[slots=256]": (59.1, 43.7, 48.9, 34.0, 50.5, 37.9),
    "diet-abs-lin[slots=256]": (61.6, 46.0, 52.2, 37.0, 53.6, 40.9),
}
HEAD: Mapping[str, Row] = {
    "diet-rel": (69.4, 54.4, 58.6, 43.5, 62.4, 49.3),
    "diet-rel[share=head-wise]": (66.0, 50.5, 55.5, 40.4, 59.2, 44.6),
    "diet-rel[share=layer-wise]": (68.7, 53.8, 58.4, 43.2, 61.0, 48.4),
    "diet-abs[rank=64,share=none]": (67.5, 52.4, 57.3, 42.3, 61.6, 46.8),
    "diet-abs[rank=128,share=none]": (68.2, 52.0, 57.9, 42.6, 61.5, 47.6),
    "diet-abs[rank=512,share=none]": (68.0, 52.0, 57.7, 42.4, 61.6, 48.4),
    "diet-abs[rank=64,share=layer-wise]": (69.3, 53.2, 59.4, 44.1, 63.3, 48.6),
    "diet-abs[rank=128,share=layer-wise]": (70.0, 53.6, 59.8, 44.5, 64.6, 51.5),
    "diet-abs[rank=256,share=layer-wise]": (69.9, 53.8, 59.6, 44.2, 62.8, 49.1),
    "diet-abs[rank=512,share=layer-wise]": (69.0, 53.2, 58.4, 43.0, 62.5, 48.8),
}


def figures(task: str, encoding: Encoding | None, segments: str) -> tuple[float, float] | None:
    """EM and F1 of a task's mean; None where the paper has no such row.

    Args:
        encoding: of the pretraining. segments: none, input, head.
    """
    found = published({"input": INPUT, "head": HEAD}.get(segments, {}), encoding, UNSET) if encoding else None
    if not found:
        return None
    place = 2 * TASKS.index(task)
    return found[place + 1], found[place]


def departures(settings: Settings) -> list[str]:
    """In what a run departs from the paper's protocol, in a few words each; segments choose the row."""
    theirs, preset = read_preset(PAPER), read_preset(PRESET)
    wanted = {name: theirs[name] for name in PROTOCOL if name not in ("segments", "keep")}
    wanted |= {name: preset[name.replace("_", "-")] for name in WINDOWS}
    told = of_settings(wanted, settings) + of_flags(theirs["train"], settings.train, intervals=settings.kept == "best")
    return told + ([f"the {settings.kept} checkpoint"] if settings.kept != theirs["keep"] else [])
