"""Which pieces of a vocabulary begin a word, for each way of cutting words into pieces.

No files of the tokenizer are needed: the marks are in the pieces.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MASK = "<mask>"

Flags = NDArray[np.bool_]


class Scheme(NamedTuple):
    """begins: the piece begins a word, unless what is before it goes on. goes_on: the word goes on behind it."""

    begins: Callable[[str], bool]
    goes_on: Callable[[str], bool]


def _never(piece: str) -> bool:
    return False


#: U+2581, SentencePiece's space; in GPT-2's alphabet of bytes U+0120 is the space, U+010A and U+0109 line and tab
SCHEMES = {
    "sentencepiece": Scheme(lambda piece: piece.startswith("\u2581"), _never),
    "wordpiece": Scheme(lambda piece: not piece.startswith("##"), _never),
    "gpt2": Scheme(lambda piece: piece[:1] in ("\u0120", "\u010a", "\u0109"), _never),
    "fastbpe": Scheme(lambda piece: True, lambda piece: piece.endswith("@@")),
}


#: marks that words do not have; a vocabulary with so many of them is one of pieces
_MARKS = {"sentencepiece": "\u2581", "wordpiece": "##", "gpt2": "\u0120"}
_MANY = 0.1


def marked(pieces: Sequence[str]) -> str | None:
    """The scheme whose marks many of the pieces have."""
    counts = {name: sum(piece.startswith(mark) for piece in pieces) for name, mark in _MARKS.items()}
    counts["fastbpe"] = sum(piece.endswith("@@") for piece in pieces)
    scheme = max(counts, key=lambda name: counts[name])
    return scheme if counts[scheme] > _MANY * len(pieces) else None


class Words:
    """Tells the words of a sequence of ids apart.

    A special symbol is no word and ends one, so the first piece behind it begins a word, whatever its mark. <unk> is
    not of the word, but does not end it: letters that SentencePiece does not know are in the midst of words.

    Args:
        pieces: by id. specials: the ids that are no text, `unknown` among them. scheme: a name of `SCHEMES`.
    """

    def __init__(self, pieces: Sequence[str], specials: Sequence[int], scheme: str, unknown: int = 3) -> None:
        marks = SCHEMES[scheme]
        self.unknown = unknown
        self.special: Flags = np.zeros(len(pieces), bool)
        self.special[list(specials)] = True
        self.begins: Flags = np.array([marks.begins(piece) for piece in pieces])
        self.goes_on: Flags = np.array([marks.goes_on(piece) for piece in pieces])

    def starts(self, before: NDArray[np.int64], ids: NDArray[np.int64]) -> Flags:
        """[n] each: whether an id behind `before` begins a word, or is a special symbol."""
        return self.special[ids] | self.special[before] | (self.begins[ids] & ~self.goes_on[before])

    def numbered(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The word of each id [n], from 0; -1 for specials."""
        special = self.special[ids]
        ends = special & (ids != self.unknown)
        before = np.concatenate([[True], ends[:-1]])
        goes_on = np.concatenate([[False], self.goes_on[ids[:-1]]])
        starts = ~ends & (before | (self.begins[ids] & ~goes_on))
        numbers = np.full(len(ids), -1)
        # a word of which nothing is known is none
        numbers[~special] = np.unique(starts.cumsum()[~special], return_inverse=True)[1]
        return numbers


def gpt2_pieces(symbols: Sequence[str], encoder_json: Path) -> list[str]:
    """The pieces of a dictionary of GPT-2's numbers, as fairseq's RoBERTa has; what is no number stays.

    Raises:
        ValueError: a number that the encoder does not know.
    """
    pieces = {str(number): piece for piece, number in json.loads(encoder_json.read_text("utf-8")).items()}
    unknown = [symbol for symbol in symbols if symbol.isdecimal() and symbol not in pieces]
    if unknown:
        raise ValueError(f"{encoder_json} has no piece {unknown[0]}, as the dictionary has: it is another's")
    return [pieces.get(symbol, symbol) for symbol in symbols]
