"""Compute ROUGE-L from the longest common subsequence of a hypothesis and a reference.

The formula is from Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.extras import extra
from ..core.refusal import InputError
from .units import units_of

#: f1: the F1 score with the best single reference. coco: F with beta 1.2, as in the evaluation of image captions (Chen
#: et al. 2015), which Du et al. (2017) use.
VARIANTS = ("f1", "coco")
COCO_BETA = 1.2


def rouge_l(hypothesis: str, references: Sequence[str], *, units: str = "words", variant: str = "f1") -> float:
    """Return the ROUGE-L of a text, from 0 to 1, ignoring case.

    With several references, the highest score is returned. Variant `coco` combines the best precision with the best
    recall, even if they come from different references, as in the code of Chen et al. 2015.

    Args:
        hypothesis: Text to score.
        references: One or more reference texts.
        units: Units by which texts are compared, a name in `units.UNITS`.
        variant: Formula of the score, one of `VARIANTS`.
    Raises:
        ValueError: There is no reference, or the units or the variant are unknown.
    """
    return of_units(units_of(hypothesis, units), [units_of(reference, units) for reference in references], variant)


def mean_rouge_l(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, units: str = "words", variant: str = "f1"
) -> float:
    """Return the mean ROUGE-L of all texts, each with its own references.

    Raises:
        ValueError: There are no texts, or the number of lists of references differs from the number of texts.
    """
    if not hypotheses:
        raise InputError("there are no texts to score with ROUGE-L. Check that the split is not empty.")
    pairs = zip(hypotheses, references, strict=True)
    scores = [rouge_l(hypothesis, texts, units=units, variant=variant) for hypothesis, texts in pairs]
    return sum(scores) / len(scores)


def of_units(hypothesis: Sequence[str], references: Sequence[Sequence[str]], variant: str = "f1") -> float:
    """Return the ROUGE-L of texts that are already split into units; see `rouge_l`."""
    if variant not in VARIANTS:
        raise InputError(f"variant {variant!r} of ROUGE-L is unknown. Choose from {', '.join(VARIANTS)}.")
    if not references:
        raise InputError("ROUGE-L needs at least one reference for each text. Add references, or leave the text out.")
    parts = [_parts(hypothesis, reference) for reference in references]
    if variant == "coco":
        return _f(max(precision for precision, _ in parts), max(recall for _, recall in parts), COCO_BETA)
    return max(_f(precision, recall, 1.0) for precision, recall in parts)


def _parts(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[float, float]:
    """Return the precision and the recall of a hypothesis; both are 0 if either text is empty."""
    if not hypothesis or not reference:
        return 0.0, 0.0
    common = extra("rapidfuzz.distance", "ROUGE-L").LCSseq.similarity(hypothesis, reference)
    return common / len(hypothesis), common / len(reference)


def _f(precision: float, recall: float, beta: float) -> float:
    if not precision or not recall:
        return 0.0
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)
