"""What generated questions score, grouped by their source: a source has one output, and all its questions are
references (as in Du et al. 2017)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF

from .rouge import mean_rouge_l

#: sacrebleu's tokenizer for each of `units.UNITS`
TOKENIZERS = {"words": "13a", "characters": "zh", "spaces": "none"}


@dataclass(frozen=True)
class GroupedText:
    """An output and the references for each source, in the order of the sources' first items."""

    hypotheses: list[str]
    references: list[list[str]]


@dataclass(frozen=True)
class Scores:
    """Not rounded; BLEU and chrF from 0 to 100, the others from 0 to 1."""

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
    """Items of the same source become one, with the output of the first; its references are those of all of them.

    Raises:
        ValueError: not as many of each.
    """
    first: dict[Hashable, str] = {}
    all_of: dict[Hashable, list[str]] = {}
    for hypothesis, given, source in zip(hypotheses, references, sources, strict=True):
        first.setdefault(source, hypothesis)
        all_of.setdefault(source, []).extend(given)
    return GroupedText([*first.values()], [[*dict.fromkeys(given)] for given in all_of.values()])


def score(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], sources: Sequence[Hashable], units: str = "words"
) -> Scores:
    """All scores.

    Args:
        hypotheses: an output an item. references: the questions of each. sources: what an item was made from; outputs
            are scored once a source. units: of `units.UNITS`.
    Raises:
        ValueError: not as many of each, no item, an item without a reference, unknown units.
    """
    found = grouped(hypotheses, references, sources)
    rouge, coco = (
        mean_rouge_l(found.hypotheses, found.references, units=units, variant=variant) for variant in ("f1", "coco")
    )
    # Outputs may be in lower case, the references are not: as ROUGE-L does, these compare lower case.
    bleu, chrf = BLEU(tokenize=TOKENIZERS[units], lowercase=True), CHRF(lowercase=True)
    columns = _columns(found.references)
    return Scores(
        rouge_l=rouge,
        rouge_l_coco=coco,
        bleu=bleu.corpus_score(found.hypotheses, columns).score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf.corpus_score(found.hypotheses, columns).score,
        chrf_signature=str(chrf.get_signature()),
        distinct=distinct(found.hypotheses),
        sources=len(found.hypotheses),
        items=len(hypotheses),
    )


def distinct(hypotheses: Sequence[str]) -> float:
    """The share of different texts.

    Raises:
        ValueError: no text.
    """
    if not hypotheses:
        raise ValueError("the share of distinct texts of none: is the split empty?")
    return len(set(hypotheses)) / len(hypotheses)


def _columns(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Streams as sacrebleu reads them; None where a text has fewer references."""
    most = max(map(len, references))
    return [[given[number] if number < len(given) else None for given in references] for number in range(most)]
