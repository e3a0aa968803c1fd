"""Split a question and its context into windows of pieces: `<s> question </s></s> part of the context </s>`.

The windows are those of BERT's run_squad.py (Devlin et al. 2019). A long context is read in overlapping windows, each
of which begins `stride` pieces after the previous window. If several windows contain a piece, answers that begin with
the piece are read from the window with the most context around the piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..core.refusal import InputError

#: ids of <s> and </s> in fairseq's dictionaries
BEGIN, END = 0, 2
#: target of a window that does not contain the answer: the position of <s>
NULL = 0


class Piece(NamedTuple):
    """Describe a piece by its id and its place in the text.

    The place excludes spaces around the piece, so that `start` equals `end` if the piece consists of spaces.
    """

    id: int
    start: int
    end: int


class Window(NamedTuple):
    """Describe a window, which holds `length` pieces of the context from piece number `first` on."""

    first: int
    length: int


class Item(NamedTuple):
    """Hold a sample made from a window.

    column: Position in `tokens` of the first piece of the context. start, end: Positions in `tokens` of the answer's
    first and last piece, or 0 (the position of <s>) if the window does not contain the answer.
    """

    tokens: list[int]
    window: Window
    column: int
    start: int
    end: int


@dataclass(frozen=True)
class Shape:
    """Hold the lengths that decide how a question and its context are divided into samples.

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
        if self.stride < 1 or self.longest_question < 1:
            raise InputError(
                f"--stride {self.stride}, --longest-question {self.longest_question}: both must be at least 1."
            )
        if self.separators not in (1, 2):
            raise InputError(f"--separators {self.separators}: the number must be 1 or 2.")
        if self.room(self.longest_question) < 1:
            least = self.longest_question + self.separators + 3
            raise InputError(
                f"--length {self.longest} leaves no room for a context after a question of {self.longest_question} "
                f"pieces. Give at least {least}, or a smaller --longest-question."
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
    """Return the number of the window from which to read the answers that begin with `piece`.

    As in BERT, choose the window with the highest score. The score is the number of context pieces to the left or to
    the right of `piece`, whichever is smaller, plus 1% of the window's length.
    """

    def context(number: int) -> float:
        first, length = spans[number]
        return min(piece - first, first + length - 1 - piece) + 0.01 * length

    holding = [number for number, (first, length) in enumerate(spans) if first <= piece < first + length]
    return max(holding, key=context)


def place(pieces: Sequence[Piece], start: int, end: int) -> tuple[int, int] | None:
    """Return the first and last piece that cover characters `start` to `end` - 1; None if there is no such piece."""
    inside = [number for number, piece in enumerate(pieces) if piece.end > start and piece.start < end]
    return (inside[0], inside[-1]) if inside else None


def items(
    question: Sequence[int], context: Sequence[Piece], answer: tuple[int, int] | None, shape: Shape
) -> list[Item]:
    """Return the samples of a question, one for each window of its context.

    Args:
        question: Ids of the question's pieces.
        context: Pieces of the context.
        answer: Numbers of the answer's first and last piece in the context, or None.
        shape: Lengths and stride of the windows.
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
