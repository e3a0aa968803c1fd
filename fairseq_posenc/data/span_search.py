"""Find the n best answers to a question from the logits of its windows, and the odds that it has no answer.

The search is that of BERT's run_squad.py (Devlin et al. 2019), but it compares all spans, not only spans between the 20
best starts and ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.refusal import InputError
from .span_items import NULL, Window, owner

Logits = NDArray[np.float64]


@dataclass(frozen=True)
class Search:
    """Hold the options of the search for answers.

    Args:
        n_best: Number of answers per question.
        longest: Maximum number of pieces of an answer (BERT: 30).
    """

    n_best: int = 20
    longest: int = 30

    def __post_init__(self) -> None:
        if self.n_best < 1 or self.longest < 1:
            raise InputError(f"--n-best {self.n_best}, --longest-answer {self.longest}: both must be at least 1.")


class WindowLogits(NamedTuple):
    """Hold a window and the model's start and end logits [T]; the context begins at position `column`."""

    window: Window
    column: int
    start: Logits
    end: Logits


class Answer(NamedTuple):
    """Hold an answer, the start logit of its first piece and the end logit of its last piece."""

    text: str
    start: float
    end: float

    @property
    def score(self) -> float:
        return self.start + self.end


class Answers(NamedTuple):
    """Hold the answers to a question.

    best: The best answers, sorted by score, without duplicates and empty texts. null: The empty answer, with
    the logits of <s>. odds: Score of the empty answer minus the score of the best answer.
    """

    best: list[Answer]
    null: Answer
    odds: float


def search(text: str, offsets: Sequence[tuple[int, int]], scored: Sequence[WindowLogits], options: Search) -> Answers:
    """Find the answers to a question in all windows of its context.

    Args:
        text: The context.
        offsets: Start and end in `text` of each piece of the context.
        scored: Windows of the context with their logits; an empty context has none.
        options: Options of the search.
    """
    spans = [window.window for window in scored]

    def text_of(first: int, last: int) -> str:
        return text[offsets[first][0] : offsets[last][1]].strip()

    candidates = [answer for i in range(len(scored)) for answer in _of_window(i, scored[i], spans, options, text_of)]
    best: dict[str, Answer] = {}
    for answer in sorted(candidates, reverse=True, key=lambda answer: answer.score):
        best.setdefault(answer.text, answer)
    nulls = [Answer("", float(window.start[NULL]), float(window.end[NULL])) for window in scored]
    null = min(nulls, key=lambda answer: answer.score, default=Answer("", 0.0, 0.0))
    answers = list(best.values())[: options.n_best]
    return Answers(answers, null, null.score - answers[0].score if answers else 0.0)


def _of_window(
    number: int, scored: WindowLogits, spans: Sequence[Window], options: Search, text_of: Callable[[int, int], str]
) -> list[Answer]:
    """Return the best answers in one window, except for answers that `owner` assigns to another window.

    Args:
        text_of: Function that returns the text from one piece of the context to another, inclusive.
    """
    (first, length), column = scored.window, scored.column
    start, end = (logits[column : column + length] for logits in (scored.start, scored.end))
    mine = np.array([len(spans) == 1 or owner(spans, first + piece) == number for piece in range(length)])
    width = min(options.longest, length)
    padded = np.concatenate([end, np.full(width - 1, -np.inf)])
    # [length, width]: score of the span that begins at the row's piece and has `column` further pieces
    scores = start[:, None] + np.lib.stride_tricks.sliding_window_view(padded, width)[:length]
    scores = np.where(mine[:, None], scores, -np.inf)
    best: dict[str, Answer] = {}  # several spans may have the same text, because all bytes of a letter have one place
    for place in np.argsort(-scores, axis=None, kind="stable"):
        piece, last = int(place // width), int(place // width + place % width)
        if len(best) == options.n_best or not math.isfinite(scores.flat[place]):
            break
        if answer := text_of(first + piece, first + last):
            best.setdefault(answer, Answer(answer, float(start[piece]), float(end[last])))
    return list(best.values())


def probabilities(answers: Sequence[Answer]) -> list[float]:
    """Return the softmax of the answers' scores."""
    if not answers:
        return []
    scores = np.array([answer.score for answer in answers])
    powers = np.exp(scores - scores.max())
    return (powers / powers.sum()).tolist()
