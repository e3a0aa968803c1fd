"""Process chunks of questions in parallel; the results keep the order of the chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from .items import Cut, Cutter
from .problems import Problem
from .reading import Question

CHUNK = 256  # questions per chunk
Chunk = tuple[str, list[Question]]  # a split and its questions
Result = TypeVar("Result")

_cutter: Cutter | None = None


def chunks(split: str, questions: list[Question]) -> Iterator[Chunk]:
    """Yield the questions of a split in chunks."""
    return ((split, questions[begin : begin + CHUNK]) for begin in range(0, len(questions), CHUNK))


def mapped(work: Callable[[Chunk], Result], cutter: Cutter, parts: Iterator[Chunk], workers: int) -> Iterator[Result]:
    """Yield the results of all chunks, in order.

    Args:
        work: One of the functions `cut` and `count`.
    """
    if workers == 1:
        _start(cutter)
        yield from map(work, parts)
        return
    # A forked process inherits the imported modules and starts at once; this is safe, as nothing here has threads.
    with ProcessPoolExecutor(workers, get_context("fork"), _start, (cutter,)) as pool:
        yield from pool.map(work, parts)


def _start(cutter: Cutter) -> None:
    global _cutter
    _cutter = cutter


def cut(chunk: Chunk) -> list[tuple[Cut | None, list[Problem]]]:
    """Return the pieces and the problems of each question."""
    split, questions = chunk
    if _cutter is None:
        raise RuntimeError("this process has no tokenizer; call `mapped`, which sets it.")
    return [_cutter.cut(split, question) for question in questions]


def count(chunk: Chunk) -> Counter[str]:
    """Count the pieces of the items."""
    counts: Counter[str] = Counter()
    for pieces, _ in cut(chunk):
        if pieces:
            counts.update([*(pieces.answer or ()), *pieces.context, *pieces.question])
    return counts
