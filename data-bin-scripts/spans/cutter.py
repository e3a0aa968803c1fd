"""Questions and contexts to windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from questions.reading import Answer, Question

if TYPE_CHECKING:
    from fairseq_posenc.data.span_items import Item, Shape
    from fairseq_posenc.data.span_pieces import Pieces


class Cutter:
    """Args:
    pieces: of the model's vocabulary. shape: of fairseq_posenc/data/span_items.py.
    """

    def __init__(self, pieces: Pieces, shape: Shape) -> None:
        self.pieces, self.shape = pieces, shape
        self._context = lru_cache(maxsize=64)(pieces.cut)  # the questions of a context follow each other

    def offsets(self, context: str) -> list[tuple[int, int]]:
        return [(piece.start, piece.end) for piece in self._context(context)]

    def items(self, one: Question) -> tuple[list[Item], int, str | None]:
        """Its windows, the pieces of the question, and the answer that its pieces give back."""
        from fairseq_posenc.data.span_items import items, place

        context, question = self._context(one.context), [piece.id for piece in self.pieces.cut(one.text)]
        if not one.answers:
            return items(question, context, None, self.shape), len(question), None
        text, start = one.answers[0]
        answer = place(context, start, start + len(text))
        back = one.context[context[answer[0]].start : context[answer[1]].end] if answer else None
        return items(question, context, answer, self.shape), len(question), back

    def shortest(self, context: str, answers: Iterable[Answer], made: Sequence[Item]) -> int | None:
        """The pieces of the shortest answer that predictions can be: its last piece is in the window of its first.

        0 where there is none, None where no answer stands at its place.
        """
        from fairseq_posenc.data.span_items import owner, place

        pieces, found = self._context(context), list[int]()
        spans = [item.window for item in made]
        for text, start in answers:
            if not text.strip() or start < 0 or not context.startswith(text, start):
                continue
            at = place(pieces, start, start + len(text))
            window = spans[owner(spans, at[0])] if at else None
            found.append(at[1] - at[0] + 1 if at and window and at[1] < window.first + window.length else 0)
        return min(filter(None, found), default=0) if found else None
