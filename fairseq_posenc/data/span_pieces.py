"""Split text into words, characters or the pieces of a pretrained tokenizer, and locate each piece in the text."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from .question_pieces import Pretrained, Words
from .span_items import Piece

#: id of <unk> in fairseq's dictionaries
UNKNOWN = 3


class Pieces(Protocol):
    """Define the interface of the classes that split text."""

    def cut(self, text: str) -> list[Piece]: ...


class TokenizerSplitter:
    """Split text with a pretrained tokenizer.

    Args:
        contents: Contents of a tokenizer.json with the ids of the dictionary, as hub/tokenizer/fit.py returns it.
    """

    def __init__(self, contents: dict[str, Any]) -> None:
        self._tokenizer = Pretrained(contents)

    def cut(self, text: str) -> list[Piece]:
        return with_marks(text, [trimmed(text, *piece) for piece in self._tokenizer.numbered(text)])


class RegexSplitter:
    """Split text with a regular expression.

    Args:
        kind: Units into which text is split, a key of `question_pieces.JOINED`.
        ids: Ids of the dictionary's words.
        cased: Whether to keep the case of letters; otherwise text becomes lower case.
    """

    def __init__(self, kind: str, ids: Mapping[str, int], *, cased: bool) -> None:
        self._words, self._ids = Words(kind, cased=cased), ids

    def cut(self, text: str) -> list[Piece]:
        return [Piece(self._ids.get(name, UNKNOWN), start, end) for name, start, end in self._words.cut(text)]


def trimmed(text: str, number: int, start: int, end: int) -> Piece:
    """Return a piece whose place excludes the spaces around it; SentencePiece and GPT-2 include them."""
    inside = text[start:end]
    left = len(inside) - len(inside.lstrip())
    return Piece(number, start + left, max(start + left, end - (len(inside) - len(inside.rstrip()))))


def with_marks(text: str, pieces: Sequence[Piece]) -> list[Piece]:
    """Extend each piece by the combining accents that follow it but belong to no piece."""
    extended = []
    for number, piece in enumerate(pieces):
        end, limit = piece.end, pieces[number + 1].start if number + 1 < len(pieces) else len(text)
        while end < limit and unicodedata.category(text[end]).startswith("M"):
            end += 1
        extended.append(piece._replace(end=end))
    return extended
