"""What the DIET paper prints for questions in other languages than English, in percent, and how it got there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recipes.lib.departures import of_flags, of_settings
from recipes.lib.encodings import Encoding, published
from recipes.lib.finetuning.sentences.settings import protocol
from recipes.lib.package import figures as printed
from recipes.lib.settings import read_preset

if TYPE_CHECKING:
    from .settings import Settings

#: of the paper: its protocol, and how windows are made and answers are found, which it does not state
PAPER = "diet-xtreme"
PRESET = Path(__file__).parent / "conf" / "paper.toml"
WINDOWS = ("stride", "longest_question", "longest_answer")

TRAINING = 87_599  # SQuAD 1.1
LAYERS, DIM = 12, 768
UNSET = {"rank": 64}  # D, of 768 numbers and 12 heads


def figures(task: str, encoding: Encoding | None, segments: str) -> tuple[float, float] | None:
    """Return EM and F1 of a task's mean over its languages; None where the paper has no such row.

    Args:
        task: XQuAD, MLQA or TyDiQA.
        encoding: the encoding of the pretraining.
        segments: none, input or head.
    """
    exact, f1 = (
        published(printed("DIET", column=f"{task} {score}", segments=segments), encoding, UNSET)
        for score in ("EM", "F1")
    )
    return None if exact is None or f1 is None else (exact, f1)


def departures(settings: Settings) -> list[str]:
    """Say in a few words each how a run departs from the paper's protocol; segments choose the row."""
    (theirs, flags), preset = protocol(PAPER), read_preset(PRESET)
    wanted = {name: value for name, value in theirs.items() if name not in ("segments", "keep")}
    wanted |= {name: preset[name.replace("_", "-")] for name in WINDOWS}
    told = of_settings(wanted, settings) + of_flags(flags, settings.train, intervals=settings.kept == "best")
    return told + ([f"the {settings.kept} checkpoint"] if settings.kept != theirs["keep"] else [])
