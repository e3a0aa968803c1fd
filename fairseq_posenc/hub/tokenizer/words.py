"""Make a tokenizer that splits text at spaces, for a dictionary whose symbols are not parts of words."""

from __future__ import annotations

from collections.abc import Sequence

from ...data.words import marked
from .sources import Tokenizer


def of_words(symbols: Sequence[str]) -> Tokenizer | None:
    """Return a tokenizer that splits text at spaces, or None if the dictionary's symbols are parts of words."""
    if marked(symbols) is not None:
        return None
    vocabulary = {symbol: i for i, symbol in enumerate(symbols)}
    return {
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
