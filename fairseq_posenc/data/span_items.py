"""Split a question and its context into windows of pieces: `<s> question </s></s> part of the context </s>`.

This follows BERT's run_squad.py (Devlin et al. 2019). A long context is read in overlapping windows, each of which
begins `stride` pieces after the previous window. If several windows contain a piece, answers that begin with the piece
are read from the window with the most context around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: ids of <s> and </s> in fairseq's dictionaries
BEGIN, END = 0, 2
#: target of a window that does not contain the answer: the position of <s>
NULL = 0


class Piece(NamedTuple):
    """A piece: its id, and its start and end in the text without surrounding spaces, so that it may be empty."""

    id: int
    start: int
    end: int


class Window(NamedTuple):
    """A window: `length` pieces of the context, beginning with piece number `first`."""

    first: int
    length: int


class Item(NamedTuple):
    """A sample made from a window.

    column: Position of the first piece of the context. start, end: Positions of the answer's first and last piece, or
    NULL.
    """

    tokens: list[int]
    window: Window
    column: int
    start: int
    end: int


@dataclass(frozen=True)
class Shape:
    """Lengths that decide how questions become samples.

    Args:
        longest: Maximum number of pieces of a sample, including special symbols.
        stride: Number of pieces from the start of a window to the start of the next window.
        longest_question: Maximum number of pieces of a question; the rest is cut off.
        separators: Number of </s> between question and context: 2 as in RoBERTa, or 1 as in BERT.
    Raises:
        ValueError: There is no room for a context, or a number is out of range.
    """

    longest: int
    stride: int = 128
    longest_question: int = 64
    separators: int = 2

    def __post_init__(self) -> None:
        if self.stride < 1 or self.longest_question < 1 or self.separators not in (1, 2):
            raise ValueError(
                f"--stride {self.stride} and --longest-question {self.longest_question} must be at least 1, and "
                f"--separators {self.separators} must be 1 or 2."
            )
        if self.room(self.longest_question) < 1:
            least = self.longest_question + self.separators + 3
            raise ValueError(
                f"A length of {self.longest} leaves no room for a context after a question of {self.longest_question} "
                f"pieces. Give at least {least}, or allow only shorter questions."
            )

    def room(self, question: int) -> int:
        """Return the number of context pieces in a window with a question of `question` pieces."""
        return self.longest - question - self.separators - 2


def windows(pieces: int, room: int, stride: int) -> list[Window]:
    """Return the windows of a context; an empty context has none.

    A stride larger than a window's part of the context is reduced, so that every piece is in a window.
    """
    spans: list[Window] = []
    first = 0
    while first < pieces:
        spans.append(Window(first, min(pieces - first, room)))
        if first + room >= pieces:
            break
        first += min(room, stride)
    return spans


def owner(spans: Sequence[Window], piece: int) -> int:
    """Return the number of the window from which answers that begin with a piece are read.

    In each window, count the pieces to the left and to the right of this piece. The window is the one whose smaller
    count is largest; among equals, it is the longer window.
    """

    def context(number: int) -> float:
        first, length = spans[number]
        return min(piece - first, first + length - 1 - piece) + 0.01 * length

    holding = [number for number, (first, length) in enumerate(spans) if first <= piece < first + length]
    return max(holding, key=context)


def place(pieces: Sequence[Piece], start: int, end: int) -> tuple[int, int] | None:
    """Return the first and last piece of the characters from `start` to `end` - 1, or None if no piece covers them."""
    inside = [number for number, piece in enumerate(pieces) if piece.end > start and piece.start < end]
    return (inside[0], inside[-1]) if inside else None


def items(
    question: Sequence[int], context: Sequence[Piece], answer: tuple[int, int] | None, shape: Shape
) -> list[Item]:
    """Return the windows of a question as samples.

    Args:
        question: Ids of the question's pieces.
        context: Pieces of the context.
        answer: Numbers of the answer's first and last piece in the context, or None.
        shape: Lengths of the samples.
    """
    head = [BEGIN, *question[: shape.longest_question], *[END] * shape.separators]
    samples = []
    for window in windows(len(context), shape.longest - len(head) - 1, shape.stride):
        first, length = window
        body = [piece.id for piece in context[first : first + length]]
        target = (NULL, NULL)
        if answer and first <= answer[0] and answer[1] < first + length:
            target = (answer[0] - first + len(head), answer[1] - first + len(head))
        samples.append(Item([*head, *body, END], window, len(head), *target))
    return samples
