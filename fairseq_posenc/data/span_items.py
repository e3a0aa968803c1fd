"""A question and its context as windows of pieces: `<s> question </s></s> part of the context </s>`.

As BERT's run_squad.py (Devlin et al. 2019) has it: a context that is too long is read in windows that overlap, each
`stride` pieces behind the one before; where windows overlap, a piece counts in the one that has most context of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: ids of fairseq's dictionaries
BEGIN, END = 0, 2
#: the target of a window that does not hold the answer: <s>
NULL = 0


class Piece(NamedTuple):
    """Its id, and where it lies in the text; without the spaces around it, so that it may be empty."""

    id: int
    start: int
    end: int


class Window(NamedTuple):
    """`length` pieces of the context from number `first` on."""

    first: int
    length: int


class Item(NamedTuple):
    """A window as a sample.

    column: of its first piece of the context. start, end: the columns of the answer's first and last piece, or NULL.
    """

    tokens: list[int]
    window: Window
    column: int
    start: int
    end: int


@dataclass(frozen=True)
class Shape:
    """How questions become samples.

    Args:
        longest: pieces of a sample, with its special symbols. stride: from a window to the next. longest_question:
            pieces; the rest is cut off. separators: </s> between question and context, RoBERTa's 2 or BERT's 1.
    Raises:
        ValueError: no room for a context.
    """

    longest: int
    stride: int = 128
    longest_question: int = 64
    separators: int = 2

    def __post_init__(self) -> None:
        if self.stride < 1 or self.longest_question < 1 or self.separators not in (1, 2):
            raise ValueError(
                f"stride {self.stride} and longest question {self.longest_question} are at least 1, separators "
                f"{self.separators} are 1 or 2"
            )
        if self.room(self.longest_question) < 1:
            least = self.longest_question + self.separators + 3
            raise ValueError(
                f"a length of {self.longest} leaves no room for a context behind a question of {self.longest_question} "
                f"pieces: at least {least}, or shorter questions"
            )

    def room(self, question: int) -> int:
        """For pieces of the context."""
        return self.longest - question - self.separators - 2


def windows(pieces: int, room: int, stride: int) -> list[Window]:
    """Of a context; none of an empty one. No piece is left out where the stride is larger than the room."""
    found: list[Window] = []
    first = 0
    while first < pieces:
        found.append(Window(first, min(pieces - first, room)))
        if first + room >= pieces:
            break
        first += min(room, stride)
    return found


def owner(spans: Sequence[Window], piece: int) -> int:
    """The window where a piece counts: that with the most pieces on the piece's poorer side; the longer of two such."""

    def context(number: int) -> float:
        first, length = spans[number]
        return min(piece - first, first + length - 1 - piece) + 0.01 * length

    holding = [number for number, (first, length) in enumerate(spans) if first <= piece < first + length]
    return max(holding, key=context)


def place(pieces: Sequence[Piece], start: int, end: int) -> tuple[int, int] | None:
    """The first and the last piece of the characters from `start` to before `end`; None where no piece has any."""
    inside = [number for number, piece in enumerate(pieces) if piece.end > start and piece.start < end]
    return (inside[0], inside[-1]) if inside else None


def items(
    question: Sequence[int], context: Sequence[Piece], answer: tuple[int, int] | None, shape: Shape
) -> list[Item]:
    """The windows of a question.

    Args:
        question: ids. answer: the numbers of its first and last piece; None: there is none.
    """
    head = [BEGIN, *question[: shape.longest_question], *[END] * shape.separators]
    made = []
    for window in windows(len(context), shape.longest - len(head) - 1, shape.stride):
        first, length = window
        body = [piece.id for piece in context[first : first + length]]
        target = (NULL, NULL)
        if answer and first <= answer[0] and answer[1] < first + length:
            target = (answer[0] - first + len(head), answer[1] - first + len(head))
        made.append(Item([*head, *body, END], window, len(head), *target))
    return made
