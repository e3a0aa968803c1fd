"""Process questions in chunks, which may run in several processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .items import Cut, Cutter
from .problems import Problem
from .reading import Question

CHUNK = 256  # questions per chunk
Chunk = tuple[str, list[Question]]  # a split and its questions


def chunks(split: str, questions: list[Question]) -> Iterator[Chunk]:
    """Yield the questions of a split in chunks."""
    return ((split, questions[begin : begin + CHUNK]) for begin in range(0, len(questions), CHUNK))


def cut(cutter: Cutter, chunk: Chunk) -> list[tuple[Cut | None, list[Problem]]]:
    """Return the pieces and the problems of each question."""
    split, questions = chunk
    return [cutter.cut(split, question) for question in questions]


def count(cutter: Cutter, chunk: Chunk) -> Counter[str]:
    """Count the pieces of the items."""
    counts: Counter[str] = Counter()
    for pieces, _ in cut(cutter, chunk):
        if pieces:
            counts.update([*(pieces.answer or ()), *pieces.context, *pieces.question])
    return counts
