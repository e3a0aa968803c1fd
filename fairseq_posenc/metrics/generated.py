"""Compute scores of generated questions, grouped by source as in Du et al. 2017.

Each source has one output, and all of its questions are references.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ..core.extras import extra
from ..core.refusal import InputError
from .rouge import mean_rouge_l

#: name of sacrebleu's tokenizer for each of `units.UNITS`
TOKENIZERS = {"words": "13a", "characters": "zh", "spaces": "none"}


@dataclass(frozen=True)
class GroupedText:
    """Hold one output and all references for each source, in the order in which the sources first occur."""

    hypotheses: list[str]
    references: list[list[str]]


@dataclass(frozen=True)
class Scores:
    """Hold unrounded scores of generated questions. BLEU and chrF range from 0 to 100, all other scores from 0 to 1."""

    rouge_l: float
    rouge_l_coco: float
    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    distinct: float
    sources: int
    items: int


def grouped(hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[Hashable]) -> GroupedText:
    """Merge items with the same source; keep the output of the first item and the references of all items.

    Raises:
        ValueError: The arguments have different lengths.
    """
    first: dict[Hashable, str] = {}
    all_of: dict[Hashable, list[str]] = {}
    for hypothesis, texts, source in zip(hypotheses, references, sources, strict=True):
        first.setdefault(source, hypothesis)
        all_of.setdefault(source, []).extend(texts)
    return GroupedText([*first.values()], [[*dict.fromkeys(texts)] for texts in all_of.values()])


def score(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[Hashable], units: str = "words"
) -> Scores:
    """Compute all scores of generated questions.

    Args:
        hypotheses: One output per item.
        references: Reference questions of each item.
        sources: Source of each item; the outputs are scored once per source.
        units: Units by which texts are compared, a name in `units.UNITS`.
    Raises:
        ValueError: Hypotheses, references and sources differ in number or are empty, an item has no reference, or the
            units are unknown.
    """
    groups = grouped(hypotheses, references, sources)
    rouge, coco = (
        mean_rouge_l(groups.hypotheses, groups.references, units=units, variant=variant) for variant in ("f1", "coco")
    )
    # Outputs may be in lower case although the references are not. Like ROUGE-L, BLEU and chrF ignore case here.
    sacrebleu = extra("sacrebleu.metrics", "BLEU")
    bleu, chrf = sacrebleu.BLEU(tokenize=TOKENIZERS[units], lowercase=True), sacrebleu.CHRF(lowercase=True)
    columns = _columns(groups.references)
    return Scores(
        rouge_l=rouge,
        rouge_l_coco=coco,
        bleu=bleu.corpus_score(groups.hypotheses, columns).score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf.corpus_score(groups.hypotheses, columns).score,
        chrf_signature=str(chrf.get_signature()),
        distinct=distinct(groups.hypotheses),
        sources=len(groups.hypotheses),
        items=len(hypotheses),
    )


def distinct(hypotheses: Sequence[str]) -> float:
    """Return the number of different texts divided by the number of texts.

    Raises:
        ValueError: There are no texts.
    """
    if not hypotheses:
        raise InputError(
            "there are no texts, so the share of distinct texts is undefined. Check that the split is not empty."
        )
    return len(set(hypotheses)) / len(hypotheses)


def _columns(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Return the references as sacrebleu reads them: the n-th list has the n-th reference of each source, or None."""
    most = max(map(len, references))
    return [[texts[number] if number < len(texts) else None for texts in references] for number in range(most)]
