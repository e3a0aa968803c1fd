"""Implement `--scoring rouge_l`, which computes the ROUGE-L of the texts in the D- lines of fairseq-generate.

fairseq gives a scorer only one reference, the text of the item's target. A task that has several references per source
passes them to `expect`, in the order in which outputs are generated.
"""

import dataclasses  # no `from __future__ import annotations` here: fairseq reads the fields' types at run time
import logging
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer

from ..core.extras import extra
from ..core.options import option
from ..metrics.rouge import VARIANTS, rouge_l
from ..metrics.units import UNITS

logger = logging.getLogger(__name__)

AUTO = "auto"


class Expected(NamedTuple):
    """Hold the references, the weight and the units of an item that will be scored.

    Args:
        references: All reference texts of the same source.
        weight: One divided by the number of items with this source.
        units: Units by which texts are compared.
    """

    references: Sequence[str]
    weight: float
    units: str


_expected: deque[Expected] = deque()
_listening = False


def expect(items: Sequence[Expected]) -> None:
    """Keep the references of the items that will be scored next; do nothing without --scoring rouge_l."""
    if _listening:
        _expected.extend(items)


@dataclasses.dataclass
class RougeConfig(FairseqDataclass):
    """Define the options of `--scoring rouge_l`."""

    rouge_variant: ChoiceEnum(VARIANTS) = option(  # type: ignore[valid-type]
        "f1",
        "Formula: `f1` is the F1 score with the best reference, `coco` is the F score of COCO's scorer (beta 1.2).",
    )
    rouge_units: ChoiceEnum((AUTO, *UNITS)) = option(  # type: ignore[valid-type]
        AUTO,
        f"Units of text to compare. `{AUTO}` takes the units of the task's data, or words if the units of the data are "
        "unknown.",
    )


@register_scorer("rouge_l", dataclass=RougeConfig)
class RougeScorer(BaseScorer):
    """Compute the mean ROUGE-L over sources, with all references that the task passed to `expect`."""

    def __init__(self, cfg: RougeConfig) -> None:
        super().__init__(cfg)
        extra("rapidfuzz", "--scoring rouge_l")  # raise now, not after the generation of the first text
        self._sums = [0.0, 0.0]
        self._grouped = True
        self._units = str(cfg.rouge_units)
        global _listening
        _listening = True
        _expected.clear()  # announcements of an earlier generation in this process

    def add_string(self, ref: str, pred: str) -> None:
        """Add a target and the text that was generated for it."""
        if not _expected and self._grouped:
            self._grouped = False
            logger.warning(
                "--scoring rouge_l: the task does not say which items share a source, so each text is "
                "compared with only one reference."
            )
        known = _expected.popleft() if _expected else Expected([], 1.0, "words")
        self._units = known.units if self._units == AUTO else self._units
        value = rouge_l(pred, known.references or [ref], units=self._units, variant=str(self.cfg.rouge_variant))
        self._sums = [self._sums[0] + value * known.weight, self._sums[1] + known.weight]

    def score(self) -> float:
        """Return the mean ROUGE-L from 0 to 1, as in validation; 0 if no text was added."""
        return self._sums[0] / self._sums[1] if self._sums[1] else 0.0

    def result_string(self) -> str:
        """Return a line of text with the score in percent, its variant, its units and the number of sources."""
        what = "sources with all of their references" if self._grouped else "texts with one reference each"
        details = f"{self.cfg.rouge_variant}, {self._units}, {round(self._sums[1])} {what}"
        return f"ROUGE-L = {100 * self.score():.2f} ({details})"
