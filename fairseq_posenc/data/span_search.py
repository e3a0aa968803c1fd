"""Find the n best answers to a question from the logits of its windows, and the odds that it has no answer.

This follows BERT's run_squad.py (Devlin et al. 2019), but compares all spans, not only spans between the 20 best starts
and ends.
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
    """Options of the search.

    Args:
        n_best: Number of answers per question.
        longest: Maximum number of pieces of an answer (BERT: 30).
    """

    n_best: int = 20
    longest: int = 30

    def __post_init__(self) -> None:
        if self.n_best < 1 or self.longest < 1:
            raise ValueError(f"--n-best {self.n_best} and --longest-answer {self.longest} must be at least 1.")


class Read(NamedTuple):
    """A window with the model's start and end logits [T]; the context begins at position `column` of the window."""

    window: Window
    column: int
    start: Logits
    end: Logits


class Answer(NamedTuple):
    """An answer with the logits of its first (`start`) and its last piece (`end`)."""

    text: str
    start: float
    end: float

    @property
    def score(self) -> float:
        return self.start + self.end


class Answers(NamedTuple):
    """Answers to a question.

    best: The best answers in descending order, without duplicates and empty texts. null: The empty answer, with
    the logits of <s>. odds: Score of the empty answer minus the score of the best answer.
    """

    best: list[Answer]
    null: Answer
    odds: float


def search(text: str, offsets: Sequence[tuple[int, int]], reads: Sequence[Read], how: Search) -> Answers:
    """Find the answers to a question in all windows of its context.

    Args:
        text: The context.
        offsets: Start and end in `text` of each piece of the context.
        reads: The windows; an empty context has none.
        how: Options of the search.
    """
    spans = [read.window for read in reads]

    def words(first: int, last: int) -> str:
        return text[offsets[first][0] : offsets[last][1]].strip()

    candidates = [answer for number, read in enumerate(reads) for answer in _of_window(number, read, spans, how, words)]
    best: dict[str, Answer] = {}
    for answer in sorted(candidates, reverse=True, key=lambda answer: answer.score):
        best.setdefault(answer.text, answer)
    nulls = [Answer("", float(read.start[NULL]), float(read.end[NULL])) for read in reads]
    null = min(nulls, key=lambda answer: answer.score, default=Answer("", 0.0, 0.0))
    answers = list(best.values())[: how.n_best]
    return Answers(answers, null, null.score - answers[0].score if answers else 0.0)


def _of_window(
    number: int, read: Read, spans: Sequence[Window], how: Search, words: Callable[[int, int], str]
) -> list[Answer]:
    """Return the best answers in one window, among the answers that are read from this window (see `owner`).

    Args:
        words: Function that returns the text from a first to a last piece of the context.
    """
    (first, length), column = read.window, read.column
    start, end = (logits[column : column + length] for logits in (read.start, read.end))
    mine = np.array([len(spans) == 1 or owner(spans, first + piece) == number for piece in range(length)])
    width = min(how.longest, length)
    padded = np.concatenate([end, np.full(width - 1, -np.inf)])
    # [length, width]: score of the span that begins at the row's piece and has `column` further pieces
    scores = start[:, None] + np.lib.stride_tricks.sliding_window_view(padded, width)[:length]
    scores = np.where(mine[:, None], scores, -np.inf)
    best: dict[str, Answer] = {}  # several spans may have the same text, because all bytes of a letter have one place
    for place in np.argsort(-scores, axis=None, kind="stable"):
        piece, last = int(place // width), int(place // width + place % width)
        if len(best) == how.n_best or not math.isfinite(scores.flat[place]):
            break
        if answer := words(first + piece, first + last):
            best.setdefault(answer, Answer(answer, float(start[piece]), float(end[last])))
    return list(best.values())


def probabilities(answers: Sequence[Answer]) -> list[float]:
    """Return the softmax of the scores of answers."""
    if not answers:
        return []
    scores = np.array([answer.score for answer in answers])
    powers = np.exp(scores - scores.max())
    return (powers / powers.sum()).tolist()
