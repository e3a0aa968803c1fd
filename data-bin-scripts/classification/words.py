"""Split text into words, and build the vocabulary of a classifier that is trained from scratch (Qu et al. 2021, 4.1).

The paper segments text with Stanford's CoreNLP, which needs Java. Here sentencex finds the sentences, and NLTK's
NLTKWordTokenizer splits them into words by the same Penn Treebank conventions (`do n't`, `'s`, separate punctuation
marks). There are two differences: CoreNLP writes brackets as -LRB- and -RRB-, and it keeps the full stop of `etc.` at
the end of a sentence. The files of SST-2 are already tokenised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from corpora.errors import CorpusError
from corpora.pieces import SPECIALS, UNKNOWN

from . import glove

TOKENIZERS = ("nltk", "spaces")
#: Words that fairseq's dictionary reserves for special symbols.
RESERVED = {*SPECIALS, "<mask>"}


@dataclass(frozen=True)
class Segmenter:
    """Split text into words."""

    tokenizer: str  # one of TOKENIZERS

    @cached_property
    def _split(self) -> Callable[[str], list[str]]:
        if self.tokenizer == "spaces":
            return str.split
        from nltk.tokenize import NLTKWordTokenizer  # takes a second, which --help does not need
        from sentencex import segment

        split = NLTKWordTokenizer().tokenize
        return lambda text: [word for sentence in segment("en", text) for word in split(sentence)]

    def words(self, text: str) -> list[str]:
        """Return the words of a text."""
        return [word for part in self._split(text) for word in part.split()]


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of fairseq's dictionary, with their training counts and their vectors [words, width]."""

    counts: Mapping[str, int]
    vectors: Any  # a numpy array, or None without word vectors

    @cached_property
    def ids(self) -> dict[str, int]:
        """Return the id of each word."""
        return {word: len(SPECIALS) + place for place, word in enumerate(self.counts)}

    def encode(self, words: Iterable[str]) -> list[int]:
        """Return the ids of words; an unknown word gets the id of `<unk>`."""
        return [self.ids.get(word, UNKNOWN) for word in words]

    def text(self) -> str:
        """Return the content of dict.txt."""
        return "".join(f"{word} {count}\n" for word, count in self.counts.items())


def vocabulary(words: Counter[str], more_than: int, vectors: Path | None) -> Vocabulary:
    """Return the words that occur more than `more_than` times in training (and have a vector, if vectors are given).

    Raises:
        CorpusError: No word is left, or the vectors cannot be read.
    """
    frequent = {
        word: count
        for word, count in sorted(words.items(), key=lambda entry: (-entry[1], entry[0]))
        if count > more_than and word not in RESERVED
    }
    by_word = glove.read(vectors, frequent.keys()) if vectors else {}
    counts = {word: count for word, count in frequent.items() if not vectors or word in by_word}
    if not counts:
        what = f" and has a vector in {vectors}" if vectors else ""
        why = f"no word of the training text occurs more than {more_than} times{what}"
        raise CorpusError(f"--more-than {more_than}: {why}. Give --more-than 0.")
    return Vocabulary(counts, np.stack([by_word[word] for word in counts]) if vectors else None)
