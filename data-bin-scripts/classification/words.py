"""Split text into words, and build the vocabulary of a classifier that is trained from scratch (Qu et al. 2021, 4.1).

The paper segments text with Stanford's CoreNLP, which needs Java. Here sentencex finds the sentences, and NLTK's
NLTKWordTokenizer splits them into words by the same Penn Treebank conventions (`do n't`, `'s`, separate punctuation
marks). The words differ from CoreNLP's in two cases: CoreNLP writes brackets as -LRB- and -RRB-, and it keeps the full
stop of `etc.` at the end of a sentence. The files of SST-2 are already tokenised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from corpora.errors import CorpusError
from numpy.typing import NDArray
from questions.vocabulary import TAKEN, Dictionary

from . import glove

TOKENIZERS = ("nltk", "spaces")


def splitter(tokenizer: str) -> Callable[[str], list[str]]:
    """Return a function that splits text into words.

    Args:
        tokenizer: One of `TOKENIZERS`.
    """
    if tokenizer == "spaces":
        return str.split
    from nltk.tokenize import NLTKWordTokenizer  # takes a second, which --help does not need
    from sentencex import segment

    split = NLTKWordTokenizer().tokenize
    return lambda text: [word for sentence in segment("en", text) for part in split(sentence) for word in part.split()]


def vocabulary(words: Counter[str], more_than: int, vectors: Path | None) -> tuple[Dictionary, NDArray[Any] | None]:
    """Return the words that occur more than `more_than` times in the training text.

    If the file `vectors` is given, words without a vector are left out.

    Returns:
        The dictionary, and the word vectors in its order, [words, width] (None if no vectors are given).
    Raises:
        CorpusError: No word is left, or the vectors cannot be read.
    """
    ranked = sorted(words.items(), key=lambda entry: (-entry[1], entry[0]))
    counts = {word: count for word, count in ranked if count > more_than and word not in TAKEN}
    by_word = glove.read(vectors, counts.keys()) if vectors else {}
    if vectors:
        counts = {word: count for word, count in counts.items() if word in by_word}
    if not counts:
        what = f" and has a vector in {vectors}" if vectors else ""
        why = f"no word of the training text occurs more than {more_than} times{what}"
        raise CorpusError(f"--more-than {more_than}: {why}. Give --more-than 0.")
    dictionary = Dictionary([*counts], [*counts.values()])
    return dictionary, np.stack([by_word[word] for word in counts]) if vectors else None
