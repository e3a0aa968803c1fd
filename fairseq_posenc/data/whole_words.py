"""Masks of whole words, which fairseq's task means to make (`--mask-whole-words`) and cannot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, LRUCacheDataset
from numpy.typing import NDArray
from torch import Tensor

from .words import Words


@dataclass(frozen=True)
class Masking:
    """How words are masked, with fairseq's names.

    Args:
        mask_prob: the part of the words that are predicted. leave_unmasked_prob, random_token_prob: the parts of
            those that stay, and that become random pieces; the others become <mask>.
        mask_idx, pad_idx: the ids. weights: of random pieces, [vocabulary]. seed: of everything.
    """

    mask_prob: float
    leave_unmasked_prob: float
    random_token_prob: float
    mask_idx: int
    pad_idx: int
    weights: NDArray[np.float64]
    seed: int

    def __post_init__(self) -> None:
        if not 0 < self.mask_prob < 1:
            raise ValueError(f"--mask-prob {self.mask_prob}: more than 0, less than 1")
        parts = (self.leave_unmasked_prob, self.random_token_prob)
        if min(parts) < 0 or sum(parts) > 1:
            raise ValueError(f"--leave-unmasked-prob and --random-token-prob, {parts}, are parts of one")


class WholeWordMasks(BaseWrapperDataset):
    """Samples with some words masked, or (`targets`) their pieces with pads elsewhere.

    A word is chosen, and is masked, kept or replaced, as a whole; special symbols never are. The choice depends on
    the seed, the epoch and the sample's number only.
    """

    def __init__(self, dataset: Any, words: Words, masking: Masking, *, targets: bool) -> None:
        super().__init__(dataset)
        self.words, self.masking, self.targets = words, masking, targets
        self.epoch = 0

    @classmethod
    def both(cls, dataset: Any, words: Words, masking: Masking) -> tuple[Any, Any]:
        """Sources and targets."""
        dataset = LRUCacheDataset(dataset)
        source, target = (cls(dataset, words, masking, targets=targets) for targets in (False, True))
        return source, target

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Only the masks change, not the sizes."""
        return True

    def set_epoch(self, epoch: int, **unused: Any) -> None:
        """New masks."""
        super().set_epoch(epoch)
        self.epoch = epoch

    def __getitem__(self, index: int) -> Tensor:
        return self._made(self.epoch, index)

    @lru_cache(maxsize=8)  # noqa: B019 - as fairseq's own
    def _made(self, epoch: int, index: int) -> Tensor:
        ids = self.dataset[index].numpy()
        source, target = masked(ids, self.words, self.masking, (epoch, index))
        return torch.from_numpy(target if self.targets else source)


def masked(
    ids: NDArray[np.int64], words: Words, masking: Masking, number: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Source and target of a sample, [n] each; `number` makes its random numbers its own."""
    random = np.random.default_rng((masking.seed, *number))
    of_word = words.numbered(ids)
    count = int(of_word.max(initial=-1)) + 1
    chosen = np.zeros(count + 1, bool)  # the last for specials, whose word is -1
    some = int(masking.mask_prob * count + random.random())  # rounded up as often as is due
    chosen[random.choice(count, some, replace=False)] = True
    fate = random.random(count + 1)
    predicted = chosen[of_word]
    kept = predicted & (fate < masking.leave_unmasked_prob)[of_word]
    replaced = predicted & ~kept & (fate < masking.leave_unmasked_prob + masking.random_token_prob)[of_word]
    source = np.where(predicted & ~kept, masking.mask_idx, ids)
    source[replaced] = random.choice(len(masking.weights), int(replaced.sum()), p=masking.weights)
    return source, np.where(predicted, ids, masking.pad_idx)
