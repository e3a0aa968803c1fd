"""Split documents into sentences, and cut over-long sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .lines import tidy
from .pieces import END, Ids

_SENTENCES_MOST = 100_000  # maximum number of characters that sentencex splits at once


def split(language: str, paragraphs: Iterable[str]) -> list[str]:
    """Return the sentences of cleaned paragraphs. sentencex treats unsupported languages as English."""
    from sentencex import segment

    # a very long paragraph is split in several parts that end at spaces
    long = rf"\S.{{0,{_SENTENCES_MOST}}}(?=\s|$)|\S.{{0,{_SENTENCES_MOST}}}"
    texts = filter(None, map(tidy, paragraphs))
    parts = (part for text in texts for part in (re.findall(long, text) if len(text) > _SENTENCES_MOST else [text]))
    return [sentence.strip() for part in parts for sentence in segment(language, part) if sentence.strip()]


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
