"""Implement `--mask-whole-words`, which makes fairseq's own task masked_lm stop with an error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, LRUCacheDataset
from numpy.typing import NDArray
from torch import Tensor

from ..core.refusal import InputError
from .words import Words


@dataclass(frozen=True)
class Masking:
    """Hold the options of masking, which have fairseq's names.

    Args:
        mask_prob: Share of words that are predicted.
        leave_unmasked_prob: Share of the predicted words that stay as they are.
        random_token_prob: Share of the predicted words whose pieces are replaced by random pieces; all other predicted
            words become <mask>.
        mask_idx: Id of <mask>.
        pad_idx: Id of the padding symbol.
        weights: Probabilities of the random pieces, [vocabulary].
        seed: Seed of all random choices.
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
            raise InputError(f"--mask-prob {self.mask_prob}: the value must be more than 0 and less than 1.")
        parts = (self.leave_unmasked_prob, self.random_token_prob)
        if min(parts) < 0 or sum(parts) > 1:
            raise InputError(
                f"--leave-unmasked-prob {parts[0]}, --random-token-prob {parts[1]}: neither may be negative, and their "
                "sum must be at most 1."
            )


class WholeWordMasks(BaseWrapperDataset):
    """Mask some words of each sample or, with `targets`, return the selected words and padding at all other places.

    All pieces of a word are selected together, and masked, kept or replaced together. Special symbols are never
    selected. The selection depends only on the seed, the epoch and the sample's number.
    """

    def __init__(self, dataset: Any, words: Words, masking: Masking, *, targets: bool) -> None:
        super().__init__(dataset)
        self.words, self.masking, self.targets = words, masking, targets
        self.epoch = 0

    @classmethod
    def both(cls, dataset: Any, words: Words, masking: Masking) -> tuple[Any, Any]:
        """Return the data set of masked sources and the data set of their targets."""
        dataset = LRUCacheDataset(dataset)
        source, target = (cls(dataset, words, masking, targets=targets) for targets in (False, True))
        return source, target

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Return True, because a new epoch changes only the masks, not the lengths of the samples."""
        return True

    def set_epoch(self, epoch: int, **unused: Any) -> None:
        """Select new masks for this epoch."""
        super().set_epoch(epoch)
        self.epoch = epoch

    def __getitem__(self, index: int) -> Tensor:
        return self._sample(self.epoch, index)

    @lru_cache(maxsize=8)  # noqa: B019 - as in fairseq's own class
    def _sample(self, epoch: int, index: int) -> Tensor:
        ids = self.dataset[index].numpy()
        source, target = masked(ids, self.words, self.masking, (epoch, index))
        return torch.from_numpy(target if self.targets else source)


def masked(
    ids: NDArray[np.int64], words: Words, masking: Masking, number: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the masked source [n] and the target [n] of a sample; `number` is part of the random seed."""
    random = np.random.default_rng((masking.seed, *number))
    of_word = words.numbered(ids)
    count = int(of_word.max(initial=-1)) + 1
    chosen = np.zeros(count + 1, bool)  # the last entry is for special symbols, whose word is -1
    selected = int(masking.mask_prob * count + random.random())  # stochastic rounding keeps the mean
    chosen[random.choice(count, selected, replace=False)] = True
    fate = random.random(count + 1)
    predicted = chosen[of_word]
    unmasked = predicted & (fate < masking.leave_unmasked_prob)[of_word]
    replaced = predicted & ~unmasked & (fate < masking.leave_unmasked_prob + masking.random_token_prob)[of_word]
    source = np.where(predicted & ~unmasked, masking.mask_idx, ids)
    source[replaced] = random.choice(len(masking.weights), int(replaced.sum()), p=masking.weights)
    return source, np.where(predicted, ids, masking.pad_idx)
