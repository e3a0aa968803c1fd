"""Split documents into sentences, and cut over-long sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sentencex import segment

from .lines import tidy
from .pieces import END, Ids

_SENTENCES_MOST = 100_000  # maximum number of characters that sentencex splits at once


def clean(lines: Iterable[str]) -> list[str]:
    """Return the non-empty paragraphs in Unicode NFC, without control characters and with single spaces."""
    return [paragraph for paragraph in map(tidy, lines) if paragraph]


def split(language: str, paragraphs: Iterable[str]) -> list[str]:
    """Return the sentences of the paragraphs. sentencex treats unsupported languages as English."""
    return [
        sentence.strip()
        for paragraph in paragraphs
        for part in _parts(paragraph)
        for sentence in segment(language, part)
        if sentence.strip()
    ]


def _parts(paragraph: str) -> list[str]:
    """Return the paragraph; if it is very long, return it in several parts that end at spaces."""
    if len(paragraph) <= _SENTENCES_MOST:
        return [paragraph]
    return re.findall(rf"\S.{{0,{_SENTENCES_MOST}}}(?=\s|$)|\S.{{0,{_SENTENCES_MOST}}}", paragraph)


def items(ids: Ids, lengths: Ids, begins: NDArray[np.bool_], longest: int) -> tuple[Ids, NDArray[np.int32]]:
    """Return a document in fairseq's form: each sentence ends with </s>, and an empty line (</s>) ends the document.

    Args:
        ids: Concatenated ids of all sentences.
        lengths: Number of ids of each sentence, [sentences].
        begins: For each id, whether its piece begins a word.
        longest: Maximum number of pieces of an item, without </s>.
    Returns:
        The concatenated ids of all items, and the size of each item.
    """
    ends = lengths.cumsum()
    if len(lengths) and lengths.max() > longest:
        ends = _cut(ids, ends, begins, longest)
    sizes = np.diff(ends, prepend=0)
    ends, sizes = ends[sizes > 0], sizes[sizes > 0]
    return np.append(np.insert(ids, ends, END), END), np.append(sizes + 1, 1).astype(np.int32)


def _cut(ids: Ids, ends: Ids, begins: NDArray[np.bool_], longest: int) -> Ids:
    """Return the positions at which items end; over-long sentences are cut before the first word that does not fit.

    A word with more than `longest` pieces is cut as well.
    """
    cuts, begin = list[int](), 0
    for end in ends.tolist():
        while end - begin > longest:
            words = np.flatnonzero(begins[ids[begin + 1 : begin + longest + 1]])
            begin += int(words[-1]) + 1 if len(words) else longest
            cuts.append(begin)
        cuts.append(end)
        begin = end
    return np.array(cuts, np.int64)
