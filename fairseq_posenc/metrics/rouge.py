"""ROUGE-L: the longest common subsequence of a hypothesis and a reference (Lin 2004, ROUGE: A Package for Automatic
Evaluation of Summaries, section 3)."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import LCSseq

from .units import units_of

#: f1: of precision and recall with one reference, the best of all. coco: beta 1.2, as the captions' evaluation (Chen et
#: al. 2015) and with it that of Du et al. (2017) have it
VARIANTS = ("f1", "coco")
COCO_BETA = 1.2


def rouge_l(hypothesis: str, references: Sequence[str], *, units: str = "words", variant: str = "f1") -> float:
    """Of a text, from 0 to 1; text is compared in lower case.

    Args:
        references: one or more. The best counts; in variant coco the best precision with the best recall, whichever
            references they are of, as its code has it. units: of `units.UNITS`. variant: of `VARIANTS`.
    Raises:
        ValueError: no reference, unknown units, an unknown variant.
    """
    return of_units(units_of(hypothesis, units), [units_of(one, units) for one in references], variant)


def mean_rouge_l(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, units: str = "words", variant: str = "f1"
) -> float:
    """The mean of all texts, each with its own references.

    Raises:
        ValueError: no text, or not as many lists of references.
    """
    if not hypotheses:
        raise ValueError("ROUGE-L of no text: is the split empty?")
    pairs = zip(hypotheses, references, strict=True)
    return sum(rouge_l(one, given, units=units, variant=variant) for one, given in pairs) / len(hypotheses)


def of_units(hypothesis: Sequence[str], references: Sequence[Sequence[str]], variant: str = "f1") -> float:
    """The same of texts as units."""
    if variant not in VARIANTS:
        raise ValueError(f"no variant {variant!r} of ROUGE-L; there are: {', '.join(VARIANTS)}")
    if not references:
        raise ValueError("ROUGE-L wants a reference")
    parts = [_parts(hypothesis, reference) for reference in references]
    if variant == "coco":
        return _f(max(one for one, _ in parts), max(other for _, other in parts), COCO_BETA)
    return max(_f(precision, recall, 1.0) for precision, recall in parts)


def _parts(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[float, float]:
    """Precision and recall; 0 where there is no text."""
    if not hypothesis or not reference:
        return 0.0, 0.0
    common = LCSseq.similarity(hypothesis, reference)
    return common / len(hypothesis), common / len(reference)


def _f(precision: float, recall: float, beta: float) -> float:
    if not precision or not recall:
        return 0.0
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)
