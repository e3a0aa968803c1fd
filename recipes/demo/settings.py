"""Define the settings of the demo; conf/ holds their values and the reasons for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from recipes.lib import recipe
from recipes.lib.encodings import parse_all
from recipes.lib.recipe import about
from recipes.lib.values import Flags

CONF = Path(__file__).parent / "conf"


@dataclass(kw_only=True)
class Settings(recipe.Settings):
    encodings: list[str] = field(metadata=about("Position encodings to compare; `none` is always included."))
    least_gap: float = field(
        metadata=about("Minimum number of BLEU points by which the best encoding must beat `none`.")
    )
    measure: bool = field(
        default=True,
        metadata=about(
            "Measure the parameters that each encoding adds and its time per training step (false: leave both out of "
            "the report)."
        ),
    )
    corpus: dict[str, int] = field(metadata=about("Number of sentence pairs in each set: train, valid and test."))
    subwords: dict[str, int] = field(metadata=about("Size of the subword vocabulary."))
    train: Flags = field(metadata=about("Flag of fairseq-train, for example --train.lr 0.001."))
    generate: Flags = field(metadata=about("Flag of fairseq-generate, for example --generate.beam 4."))

    def __post_init__(self) -> None:
        super().__post_init__()
        # The BLEU, parameters and training time of every encoding are compared with those of `none`.
        self.encodings = [encoding.label for encoding in parse_all(["none", *self.encodings])]

    def variables(self) -> dict[str, str]:
        """Return variables that limit each command to one thread, so that parallel commands do not slow each other."""
        return {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
