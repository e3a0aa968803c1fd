"""Look up the DIET paper's scores for questions in several languages, and list how a run departs from the paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recipes.lib.departures import of_flags, of_settings
from recipes.lib.encodings import Encoding, published
from recipes.lib.finetuning.sentences.settings import protocol
from recipes.lib.package import PRETRAINED
from recipes.lib.package import figures as printed
from recipes.lib.settings import read_preset

if TYPE_CHECKING:
    from .settings import Settings

#: The protocol of the paper. The preset adds the settings of windows and answers, which the paper does not state.
PAPER = "diet-xtreme"
PRESET = Path(__file__).parent / "conf" / "paper.toml"
WINDOWS = ("stride", "longest_question", "longest_answer")

TRAINING = 87_599  # training questions of SQuAD 1.1
LAYERS, DIM = 12, 768


def figures(task: str, encoding: Encoding | None, segments: str) -> tuple[float, float] | None:
    """Return the EM and F1 that the paper reports, as means over a dataset's languages, or None.

    Args:
        task: XQuAD, MLQA or TyDiQA.
        encoding: The position encoding of the pretrained model.
        segments: The segment encoding: none, input or head.
    """
    exact, f1 = (
        published(printed("DIET", column=f"{task} {score}", segments=segments), encoding, PRETRAINED)
        for score in ("EM", "F1")
    )
    return None if exact is None or f1 is None else (exact, f1)


def departures(settings: Settings) -> list[str]:
    """Return the differences between a run and the paper's protocol, as short texts.

    The segment encoding does not count as a departure, because the paper has rows for different segment encodings.
    """
    (values, flags), preset = protocol(PAPER), read_preset(PRESET)
    compared = {name: value for name, value in values.items() if name not in ("segments", "keep", "seeds")}
    compared |= {name: preset[name.replace("_", "-")] for name in WINDOWS}
    used, keep = settings.used_checkpoint, values["keep"]
    texts = of_settings(compared, settings) + of_flags(flags, settings.train, intervals=used == "best")
    texts += settings.departure_of_seeds(values["seeds"])
    return texts + ([f"the {used} checkpoint, not the {keep}"] if used != keep else [])
