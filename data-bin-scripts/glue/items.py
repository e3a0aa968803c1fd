"""Rows as ids: `<s> a </s>`, and of pairs `<s> a </s></s> b </s>` (RoBERTa) or `<s> a </s> b </s>` (BERT).

The <s> and the </s> before b are added by the task (--init-token, --separator-token); they count here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from corpora.pieces import END, UNKNOWN

from .reading import Row

if TYPE_CHECKING:
    from fairseq_posenc.data.question_pieces import Surface


class Item(NamedTuple):
    """Ids of each sentence, with its </s>. pieces: before anything was cut off."""

    sentences: list[list[int]]
    pieces: int
    cut: bool


class Cutter:
    """Rows to items.

    Args:
        surface: how text is cut. known: ids by piece. longest: pieces of an item, all of them.
        separators: </s> between the sentences of a pair.
    """

    def __init__(self, surface: Surface, known: Mapping[str, int], longest: int, separators: int) -> None:
        self.surface, self.known, self.longest, self.separators = surface, known, longest, separators

    def item(self, row: Row) -> Item:
        """Cut where it is too long: of a pair the longer sentence, as often as is needed (BERT)."""
        found = [[self.known.get(piece[0], UNKNOWN) for piece in self.surface.cut(text)] for text in row.sentences]
        pieces = sum(map(len, found))
        marks = 2 if len(found) == 1 else 2 + self.separators
        room = self.longest - marks
        while sum(map(len, found)) > room:
            max(reversed(found), key=len).pop()  # the second of two that are as long as each other
        return Item([[*ids, END] for ids in found], pieces + marks, pieces > room)
