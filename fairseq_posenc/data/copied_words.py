"""Give ids to words that the dictionary lacks: an id within a sample, and a permanent id for printing.

With a dictionary of V symbols, id V + k is the k-th unknown word of a sample, in order of first occurrence. fairseq
prints hypotheses by looking up ids in the dictionary alone. So before printing, unknown words get permanent ids, which
begin at `FAR` and which `CopyDictionary` can look up.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor

#: first permanent id, far above V because fairseq may add words to a dictionary while it generates
FAR = 1 << 24


class CopyDictionary(Dictionary):
    """Extend fairseq's dictionary, so that it can also print unknown words; its length does not include them."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.words: list[str] = []
        self._ids: dict[str, int] = {}

    def __getitem__(self, idx: int) -> str:
        symbol: str = self.words[idx - FAR] if idx >= FAR else super().__getitem__(idx)
        return symbol

    def number(self, word: str) -> int:
        """Return the permanent id of an unknown word; a new word gets the next id."""
        if word not in self._ids:
            self._ids[word] = FAR + len(self.words)
            self.words.append(word)
        return self._ids[word]

    def permanent_ids(self, tokens: Tensor, unknown: Sequence[str], size: int) -> Tensor:
        """Replace the sample's own ids of unknown words by permanent ids, which are the same in all samples.

        Args:
            tokens: Tokens of a sample.
            unknown: Unknown words of the sample, whose ids in the sample begin at `size`.
            size: Number V of symbols in the dictionary.
        """
        converted = tokens.clone()
        for k, word in enumerate(unknown):
            converted[tokens == size + k] = self.number(word)
        return converted

    def permanent_ids_in_batch(self, tokens: Tensor, unknown: Sequence[Sequence[str]], size: int) -> Tensor:
        """Replace ids in a batch [B, T] as `permanent_ids` does; `unknown` has the unknown words of each sample."""
        return torch.stack([self.permanent_ids(row, words, size) for row, words in zip(tokens, unknown, strict=True)])

    def sample_ids(self, tokens: Tensor, size: int) -> tuple[Tensor, list[str]]:
        """Replace permanent ids in a sample's tokens [n] by ids within the sample, and return its unknown words."""
        converted, numbers = tokens.clone(), list(dict.fromkeys(tokens[tokens >= FAR].tolist()))
        for k, number in enumerate(numbers):
            converted[tokens == number] = size + k
        return converted, [self[number] for number in numbers]

    def sample_ids_in_batch(self, tokens: Tensor, size: int) -> tuple[Tensor, list[list[str]]]:
        """Replace ids in a batch [B, S] as `sample_ids` does, and return the unknown words of each sample."""
        pairs = [self.sample_ids(row, size) for row in tokens]
        return torch.stack([converted for converted, _ in pairs]), [words for _, words in pairs]
