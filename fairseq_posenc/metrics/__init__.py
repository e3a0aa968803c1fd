"""Score generated text, extracted answers and classes, and compute outputs of baselines that need no model."""

from __future__ import annotations

from .baselines import best_constant, first_units
from .generated import GroupedText, Scores, distinct, grouped, score
from .rouge import VARIANTS, mean_rouge_l, rouge_l
from .units import UNITS, units_of

__all__ = [
    "UNITS",
    "VARIANTS",
    "GroupedText",
    "Scores",
    "best_constant",
    "distinct",
    "first_units",
    "grouped",
    "mean_rouge_l",
    "rouge_l",
    "score",
    "units_of",
]
