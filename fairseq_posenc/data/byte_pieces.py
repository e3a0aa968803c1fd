"""Find the places of byte pieces in a text: `<0xC3>` is one byte of a letter that the vocabulary lacks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import accumulate, groupby

Place = tuple[int, int]
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
#: ways in which a tokenizer may normalise a letter before splitting it into bytes
_FORMS: tuple[Callable[[str], str], ...] = (str, lambda letter: unicodedata.normalize("NFKC", letter))


def shared(text: str, names: Sequence[str], places: Sequence[Place]) -> list[Place]:
    """Return the place of each piece in the text; all bytes of a letter get the place of that letter.

    The function is needed for several unknown letters in a row. A Unigram tokenizer gives the bytes of all these
    letters the same place, but a BPE tokenizer gives each letter a place of its own.

    Args:
        text: Text that was split into the pieces.
        names: Names of the pieces, as the `tokenizers` package returns them.
        places: Start and end of each piece in the text, as the `tokenizers` package returns them.
    """
    letters = list(places)
    for (place, is_byte), group in groupby(range(len(places)), lambda i: (places[i], bool(_BYTE.fullmatch(names[i])))):
        run = list(group)
        if is_byte and place[1] - place[0] > 1:
            for i, letter in zip(run, _split(text, place, [names[i] for i in run]), strict=True):
                letters[i] = letter
    return letters


def _split(text: str, place: Place, names: Sequence[str]) -> list[Place]:
    """Return the place of each byte's letter.

    If it cannot be determined which bytes belong to which letter, return the common `place` for every byte.
    """
    # a character begins at each byte that is not a continuation byte (10xxxxxx)
    of = list(accumulate(int(name[3:5], 16) & 0xC0 != 0x80 for name in names))
    letters = _letters(text, place)
    for form in _FORMS:
        counts = [len(form(text[start:end])) for start, end in letters]
        if sum(counts) == of[-1] and of[0] == 1:
            owners = [letter for letter, count in zip(letters, counts, strict=True) for _ in range(count)]
            return [owners[character - 1] for character in of]
    return [place] * len(names)


def _letters(text: str, place: Place) -> list[Place]:
    """Return the place of each letter, including combining accents, which normalisation may merge with the letter."""
    starts = [at for at in range(*place) if at == place[0] or not unicodedata.category(text[at]).startswith("M")]
    return list(zip(starts, [*starts[1:], place[1]], strict=True))
