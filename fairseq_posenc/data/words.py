"""Tell which pieces of a vocabulary begin a word, for each scheme of splitting words into pieces.

The tokenizer's files are not needed, because the pieces themselves contain the scheme's marks, such as ## in WordPiece.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.refusal import InputError

MASK = "<mask>"

Flags = NDArray[np.bool_]


class Scheme(NamedTuple):
    """Describe how the pieces of a scheme mark words.

    begins: Whether a piece looks like the beginning of a word. goes_on: Whether the next piece belongs to the same
    word, even if it looks like the beginning of a word.
    """

    begins: Callable[[str], bool]
    goes_on: Callable[[str], bool]


def _never(piece: str) -> bool:
    return False


#: U+2581 is SentencePiece's space. In GPT-2's alphabet of bytes, U+0120 is the space, U+010A a newline and U+0109 a
#: tab.
SCHEMES = {
    "sentencepiece": Scheme(lambda piece: piece.startswith("\u2581"), _never),
    "wordpiece": Scheme(lambda piece: not piece.startswith("##"), _never),
    "gpt2": Scheme(lambda piece: piece[:1] in ("\u0120", "\u010a", "\u0109"), _never),
    "fastbpe": Scheme(lambda piece: True, lambda piece: piece.endswith("@@")),
}


#: Marks that do not occur in whole words: if more than this share of the symbols has them, the symbols are pieces.
_MARKS = {"sentencepiece": "\u2581", "wordpiece": "##", "gpt2": "\u0120"}
_MARKED_SHARE = 0.1


def marked(pieces: Sequence[str]) -> str | None:
    """Return the scheme whose marks are most frequent, or None if at most a tenth of the pieces have its marks."""
    counts = {name: sum(piece.startswith(mark) for piece in pieces) for name, mark in _MARKS.items()}
    counts["fastbpe"] = sum(piece.endswith("@@") for piece in pieces)
    scheme = max(counts, key=lambda name: counts[name])
    return scheme if counts[scheme] > _MARKED_SHARE * len(pieces) else None


class Words:
    """Divide a sequence of ids into words.

    A special symbol is not part of a word, and it ends the word before it. So the piece after a special symbol begins a
    word, whatever its mark. <unk> is not part of a word and does not end the word before it, because SentencePiece also
    writes <unk> for an unknown letter inside a word.

    Args:
        pieces: Pieces in the order of their ids.
        specials: Ids of the symbols that are not text, including `unknown`.
        scheme: Name of the scheme of pieces, one of `SCHEMES`.
        unknown: Id of <unk>.
    """

    def __init__(self, pieces: Sequence[str], specials: Sequence[int], scheme: str, unknown: int = 3) -> None:
        marks = SCHEMES[scheme]
        self.unknown = unknown
        self.special: Flags = np.zeros(len(pieces), bool)
        self.special[list(specials)] = True
        self.begins: Flags = np.array([marks.begins(piece) for piece in pieces])
        self.goes_on: Flags = np.array([marks.goes_on(piece) for piece in pieces])

    def starts(self, before: NDArray[np.int64], ids: NDArray[np.int64]) -> Flags:
        """Return whether each id [n] begins a word or is a special symbol; `before` [n] holds the preceding ids.

        Unlike in `numbered`, <unk> counts as a word, and the piece after <unk> begins a word.
        """
        return self.special[ids] | self.special[before] | (self.begins[ids] & ~self.goes_on[before])

    def numbered(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each id [n] the number of its word, counted from 0, or -1 for special symbols."""
        special = self.special[ids]
        ends = special & (ids != self.unknown)
        before = np.concatenate([[True], ends[:-1]])
        goes_on = np.concatenate([[False], self.goes_on[ids[:-1]]])
        starts = ~ends & (before | (self.begins[ids] & ~goes_on))
        numbers = np.full(len(ids), -1)
        # words that consist of <unk> only are not counted
        numbers[~special] = np.unique(starts.cumsum()[~special], return_inverse=True)[1]
        return numbers


def gpt2_pieces(symbols: Sequence[str], encoder_json: Path) -> list[str]:
    """Replace ids by GPT-2's pieces in a dictionary that lists ids, as in fairseq's RoBERTa; keep other symbols.

    Raises:
        ValueError: encoder.json is not a vocabulary, or lacks one of the ids.
    """
    try:
        pieces = {str(number): piece for piece, number in json.loads(encoder_json.read_text("utf-8")).items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{encoder_json}: the file is not a JSON object with ids of pieces ({error!r}). Download it again."
        ) from None
    unknown = [symbol for symbol in symbols if symbol.isdecimal() and symbol not in pieces]
    if unknown:
        raise InputError(
            f"{encoder_json} has no piece with id {unknown[0]}. Give the encoder.json that belongs to the dictionary."
        )
    return [pieces.get(symbol, symbol) for symbol in symbols]
