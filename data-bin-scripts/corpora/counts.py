"""Count the documents, sentences and pieces of a corpus by split and language."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

import numpy as np

from .files import Split


@dataclass
class Counts:
    """Hold the counts of one split and language.

    `sentences` counts the sentences of the text. `items` counts the items of the output: sentences, parts of over-long
    sentences, and ends of documents.
    """

    documents: int = 0
    without_text: int = 0
    sentences: int = 0
    items: int = 0
    pieces: int = 0
    unknown_pieces: int = 0
    characters: int = 0

    def add(self, other: Counts) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Table:
    """Hold the counts by split and language, and the frequency of each id in the training text."""

    def __init__(self, ids: int) -> None:
        self.counts: dict[tuple[Split, str], Counts] = {}
        self.frequencies = np.zeros(ids, np.int64)

    def of(self, split: Split, language: str) -> Counts:
        return self.counts.setdefault((split, language), Counts())

    def total(self, split: Split) -> Counts:
        total = Counts()
        for (counted_split, _), counts in self.counts.items():
            if counted_split == split:
                total.add(counts)
        return total

    def to_json(self) -> list[object]:
        return [[split, language, asdict(counts)] for (split, language), counts in sorted(self.counts.items())]

    def merge(self, table: list[tuple[Split, str, dict[str, int]]], frequencies: np.ndarray) -> None:
        for split, language, counts in table:
            self.of(split, language).add(Counts(**counts))
        self.frequencies += frequencies


def factors(pieces: dict[str, int], smoothing: float) -> dict[str, float]:
    """Return how often the text of each language is repeated, so that its share is proportional to n ** smoothing.

    The factors follow the exponential smoothing of multilingual BERT (Devlin et al. 2018). Each document of the largest
    language is used once.

    Args:
        pieces: Number of pieces n of each language.
        smoothing: Exponent from 0 (equal shares for all languages) to 1 (shares in proportion to the sizes).
    """
    most = max(pieces.values())
    return {language: (most / number) ** (1 - smoothing) for language, number in pieces.items()}
