"""Documents to sentences, and over-long sentences cut."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sentencex import segment

from .lines import tidy
from .pieces import END, Ids

_SENTENCES_MOST = 100_000  # characters of a paragraph that are looked at at once


def clean(lines: Iterable[str]) -> list[str]:
    """Paragraphs: composed (NFC), without control characters, with single spaces, none of them empty."""
    return [paragraph for paragraph in map(tidy, lines) if paragraph]


def split(language: str, paragraphs: Iterable[str]) -> list[str]:
    """The sentences. Languages that sentencex does not know are split as it falls back (English)."""
    return [
        sentence.strip()
        for paragraph in paragraphs
        for part in _parts(paragraph)
        for sentence in segment(language, part)
        if sentence.strip()
    ]


def _parts(paragraph: str) -> list[str]:
    """A paragraph as it is; a giant one in parts that end at spaces."""
    if len(paragraph) <= _SENTENCES_MOST:
        return [paragraph]
    return re.findall(rf"\S.{{0,{_SENTENCES_MOST}}}(?=\s|$)|\S.{{0,{_SENTENCES_MOST}}}", paragraph)


def items(ids: Ids, lengths: Ids, begins: NDArray[np.bool_], longest: int) -> tuple[Ids, NDArray[np.int32]]:
    """A document as fairseq has it: each sentence and </s>, and </s> alone at its end, as of an empty line.

    Args:
        ids: of all sentences, one behind the other. lengths: of each [sentences]. begins: by id, whether a piece begins
            a word. longest: pieces of an item, without </s>.
    Returns:
        the ids of all items, and the size of each.
    """
    ends = lengths.cumsum()
    if len(lengths) and lengths.max() > longest:
        ends = _cut(ids, ends, begins, longest)
    sizes = np.diff(ends, prepend=0)
    ends, sizes = ends[sizes > 0], sizes[sizes > 0]
    return np.append(np.insert(ids, ends, END), END), np.append(sizes + 1, 1).astype(np.int32)


def _cut(ids: Ids, ends: Ids, begins: NDArray[np.bool_], longest: int) -> Ids:
    """Where items end, with cuts before the last word that does not fit, or in a word that does not fit at all."""
    found, begin = list[int](), 0
    for end in ends.tolist():
        while end - begin > longest:
            words = np.flatnonzero(begins[ids[begin + 1 : begin + longest + 1]])
            begin += int(words[-1]) + 1 if len(words) else longest
            found.append(begin)
        found.append(end)
        begin = end
    return np.array(found, np.int64)
