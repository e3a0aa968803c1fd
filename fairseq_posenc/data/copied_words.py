"""Words that the dictionary does not have: their ids in a sample, and how they are spelled at last.

In a sample, id V + k is its k-th such word, in order of first occurrence. fairseq spells hypotheses with the dictionary
alone, which knows of no sample; so there these words get ids of their own for good, far behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor

#: the first of them: fairseq may add words to a dictionary while it generates
FAR = 1 << 24


class CopyDictionary(Dictionary):
    """fairseq's dictionary, which also spells words that it does not have; its length does not tell of them."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.words: list[str] = []
        self._ids: dict[str, int] = {}

    def __getitem__(self, idx: int) -> str:
        found: str = self.words[idx - FAR] if idx >= FAR else super().__getitem__(idx)
        return found

    def number(self, word: str) -> int:
        """The id of a word that the dictionary does not have."""
        if word not in self._ids:
            self._ids[word] = FAR + len(self.words)
            self.words.append(word)
        return self._ids[word]

    def for_good(self, tokens: Tensor, unknown: Sequence[str], size: int) -> Tensor:
        """A sample's tokens [...] with such ids.

        Args:
            unknown: the words of the ids from `size` on.
        """
        made = tokens.clone()
        for k, word in enumerate(unknown):
            made[tokens == size + k] = self.number(word)
        return made

    def all_for_good(self, tokens: Tensor, unknown: Sequence[Sequence[str]], size: int) -> Tensor:
        """The same of a batch [B, T], with the words of each sample."""
        return torch.stack([self.for_good(row, words, size) for row, words in zip(tokens, unknown, strict=True)])

    def of_sample(self, tokens: Tensor, size: int) -> tuple[Tensor, list[str]]:
        """The other way round: one sample's tokens [n], and the words that they name."""
        made, seen = tokens.clone(), list(dict.fromkeys(tokens[tokens >= FAR].tolist()))
        for k, number in enumerate(seen):
            made[tokens == number] = size + k
        return made, [self[number] for number in seen]

    def of_samples(self, tokens: Tensor, size: int) -> tuple[Tensor, list[list[str]]]:
        """The same of a batch [B, S]."""
        pairs = [self.of_sample(row, size) for row in tokens]
        return torch.stack([made for made, _ in pairs]), [words for _, words in pairs]
