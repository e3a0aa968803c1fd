"""Provide a few pairs of sentences."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary, LanguagePairDataset


def words() -> Dictionary:
    dictionary = Dictionary()
    for letter in "abcdefgh":
        dictionary.add_symbol(letter)
    return dictionary


def pair_dataset(count: int, **more: Any) -> LanguagePairDataset:
    random = torch.Generator().manual_seed(0)
    lengths = torch.randint(3, 12, (count,), generator=random).tolist()
    lines = [torch.cat([torch.randint(4, 12, (n,), generator=random), torch.tensor([2])]) for n in lengths]
    sizes = [len(line) for line in lines]
    return LanguagePairDataset(lines, sizes, words(), lines, sizes, words(), **more)
