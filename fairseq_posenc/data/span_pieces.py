"""Text as pieces of a dictionary that know where they lie: of a pretrained tokenizer, or words and characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from .question_pieces import Pretrained, Words
from .span_items import Piece

#: <unk> of fairseq's dictionaries
UNKNOWN = 3


class Pieces(Protocol):
    """A way of cutting text."""

    def cut(self, text: str) -> list[Piece]: ...


class OfTokenizer:
    """Args:
    contents: of tokenizer.json, as hub/tokenizer/fit.py makes it, with the ids of the dictionary.
    """

    def __init__(self, contents: dict[str, Any]) -> None:
        self._made = Pretrained(contents)

    def cut(self, text: str) -> list[Piece]:
        return with_marks(text, [trimmed(text, *one) for one in self._made.numbered(text)])


class OfWords:
    """Args:
    kind: of `question_pieces.JOINED`. cased: otherwise text becomes lower case. ids: of the dictionary's words.
    """

    def __init__(self, kind: str, ids: Mapping[str, int], *, cased: bool) -> None:
        self._words, self._ids = Words(kind, cased=cased), ids

    def cut(self, text: str) -> list[Piece]:
        return [Piece(self._ids.get(name, UNKNOWN), start, end) for name, start, end in self._words.cut(text)]


def trimmed(text: str, number: int, start: int, end: int) -> Piece:
    """Without the spaces at both ends, which SentencePiece's and GPT-2's pieces have."""
    inside = text[start:end]
    left = len(inside) - len(inside.lstrip())
    return Piece(number, start + left, max(start + left, end - (len(inside) - len(inside.rstrip()))))


def with_marks(text: str, pieces: Sequence[Piece]) -> list[Piece]:
    """Accents that stand for themselves, and that a tokenizer leaves out, belong to the piece before them."""
    made = []
    for number, piece in enumerate(pieces):
        end, limit = piece.end, pieces[number + 1].start if number + 1 < len(pieces) else len(text)
        while end < limit and unicodedata.category(text[end]).startswith("M"):
            end += 1
        made.append(piece._replace(end=end))
    return made
