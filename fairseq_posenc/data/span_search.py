"""From the logits of a question's windows to its answers: n-best, and the odds that there is none.

As BERT's run_squad.py (Devlin et al. 2019) has it, but that all spans are looked at, not only those of the 20 best
starts and ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .span_items import NULL, Window, owner

Logits = NDArray[np.float64]


@dataclass(frozen=True)
class Search:
    """Args:
    n_best: how many answers of a question. longest: pieces of an answer (BERT's 30).
    """

    n_best: int = 20
    longest: int = 30

    def __post_init__(self) -> None:
        if self.n_best < 1 or self.longest < 1:
            raise ValueError(f"n-best {self.n_best} and longest answer {self.longest} are at least 1")


class Read(NamedTuple):
    """A window, and what the model made of it: logits [T] of the columns, of which the context begins at `column`."""

    window: Window
    column: int
    start: Logits
    end: Logits


class Answer(NamedTuple):
    """start, end: the logits of its first and its last piece."""

    text: str
    start: float
    end: float

    @property
    def score(self) -> float:
        return self.start + self.end


class Found(NamedTuple):
    """best: texts that are not empty, each once, the best first. null: the logits of <s>, no answer. odds: how much
    better no answer is than the best one."""

    best: list[Answer]
    null: Answer
    odds: float


def search(text: str, offsets: Sequence[tuple[int, int]], reads: Sequence[Read], how: Search) -> Found:
    """The answers to a question, from all windows of its context.

    Args:
        offsets: where the pieces of the context lie in its `text`. reads: none of a context without pieces.
    """
    spans = [read.window for read in reads]

    def words(first: int, last: int) -> str:
        return text[offsets[first][0] : offsets[last][1]].strip()

    candidates = [one for number, read in enumerate(reads) for one in _of_window(number, read, spans, how, words)]
    best: dict[str, Answer] = {}
    for answer in sorted(candidates, reverse=True, key=lambda one: one.score):
        best.setdefault(answer.text, answer)
    nulls = [Answer("", float(read.start[NULL]), float(read.end[NULL])) for read in reads]
    null = min(nulls, key=lambda one: one.score, default=Answer("", 0.0, 0.0))
    found = list(best.values())[: how.n_best]
    return Found(found, null, null.score - found[0].score if found else 0.0)


def _of_window(
    number: int, read: Read, spans: Sequence[Window], how: Search, words: Callable[[int, int], str]
) -> list[Answer]:
    """The best ones. A span begins where its first piece counts.

    Args:
        words: the text from a piece of the context to another.
    """
    (first, length), column = read.window, read.column
    start, end = (logits[column : column + length] for logits in (read.start, read.end))
    mine = np.array([len(spans) == 1 or owner(spans, first + one) == number for one in range(length)])
    width = min(how.longest, length)
    padded = np.concatenate([end, np.full(width - 1, -np.inf)])
    # [length, width]: the span that begins here and is so much longer than one piece
    scores = start[:, None] + np.lib.stride_tricks.sliding_window_view(padded, width)[:length]
    scores = np.where(mine[:, None], scores, -np.inf)
    best: dict[str, Answer] = {}  # texts may be the same: the bytes of a letter have one place
    for place in np.argsort(-scores, axis=None, kind="stable"):
        one, last = int(place // width), int(place // width + place % width)
        if len(best) == how.n_best or not math.isfinite(scores.flat[place]):
            break
        if answer := words(first + one, first + last):
            best.setdefault(answer, Answer(answer, float(start[one]), float(end[last])))
    return list(best.values())


def probabilities(answers: Sequence[Answer]) -> list[float]:
    """The softmax of their scores."""
    if not answers:
        return []
    scores = np.array([answer.score for answer in answers])
    powers = np.exp(scores - scores.max())
    return [float(one) for one in powers / powers.sum()]
