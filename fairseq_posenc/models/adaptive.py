"""Define an adaptive softmax whose loss includes every word, and Transformer-XL's adaptive softmax with one matrix.

fairseq's `adaptive_loss` ignores every target that equals the id of the padding symbol, in every band. In each band
after the first, target ids start at 0 again. So fairseq ignores the loss of one real word in each band after the first.
This module shifts the ids in all bands after the first, so that no target equals the padding id.

Legend: N tokens, d width, V size of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from fairseq.modules import AdaptiveSoftmax, FairseqDropout
from torch import Tensor, nn
from torch.nn import functional as F

from ..core.refusal import InputError

Bands = tuple[list[Tensor | None], list[Tensor | None]]


def avoid_padding_id(pad: int, logits: Sequence[Tensor | None], targets: Sequence[Tensor | None]) -> Bands:
    """Shift logits and targets by pad + 1 in all bands after the first, so that no target equals `pad`.

    Each band after the first gets pad + 1 more columns on the left; the logits in these columns are -inf.
    """
    moved_logits: list[Tensor | None] = [logits[0]]
    moved_targets: list[Tensor | None] = [targets[0]]
    for band, target in zip(logits[1:], targets[1:], strict=True):
        moved_logits.append(None if band is None else F.pad(band, (pad + 1, 0), value=float("-inf")))
        moved_targets.append(None if target is None else target + (pad + 1))
    return moved_logits, moved_targets


class CountingAdaptiveSoftmax(AdaptiveSoftmax):
    """Compute fairseq's adaptive softmax, with a loss that includes every word."""

    #: id of the padding symbol
    pad = 1

    def forward(self, input: Tensor, target: Tensor) -> Bands:
        """Return logits and targets of each band for inputs of shape (..., d) and targets of shape (...).

        Logits and targets are None for a band without targets.
        """
        return avoid_padding_id(self.pad, *super().forward(input, target))


class OneMatrixSoftmax(nn.Module):
    """Compute p(w) = p(band) p(w | band) with rows of the embedding and one bias per word (Dai et al. 2019, div_val 1).

    One softmax covers the words of the first band and one class for each other band.

    Args:
        weight: Embedding matrix, [V, d].
        cutoffs: End of each band but the last, which ends at V.
        dropout: Dropout probability of the input.
        pad: Id of the padding symbol, which the loss ignores.
    Raises:
        ValueError: The cutoffs do not increase, or do not lie between the padding id and V.
    """

    def __init__(self, weight: nn.Parameter, cutoffs: Sequence[int], *, dropout: float, pad: int) -> None:
        super().__init__()
        types, dim = weight.shape
        if list(cutoffs) != sorted(set(cutoffs)) or not 0 < cutoffs[0] <= cutoffs[-1] < types or pad >= cutoffs[0]:
            raise InputError(
                f"--adaptive-softmax-cutoff {','.join(map(str, cutoffs))}: the numbers must increase, and all must be "
                f"more than {pad} and less than {types}, the size of the dictionary. Give other numbers."
            )
        self.ends = (*cutoffs, types)
        self.pad = pad
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(types))
        self.band_weight = nn.Parameter(torch.empty(len(cutoffs), dim))
        self.band_bias = nn.Parameter(torch.zeros(len(cutoffs)))
        self.dropout_module = FairseqDropout(dropout, module_name=type(self).__name__)
        nn.init.normal_(self.band_weight, std=dim**-0.5)

    def forward(self, input: Tensor, target: Tensor) -> Bands:
        """Return logits and targets of each band for inputs of shape (..., d) and targets of shape (...).

        Logits and targets are None for a band without targets.
        """
        x, target_ids = self.dropout_module(input.flatten(0, -2)), target.flatten()
        first = target_ids.clone()
        logits: list[Tensor | None] = [self._first(x)]
        targets: list[Tensor | None] = [first]
        for band, (start, end) in enumerate(self._tails()):
            rows = self._rows(target_ids, start, end)
            first[rows] = self.ends[0] + band
            has_targets = len(rows) > 0
            logits.append(self._tail(x[rows], start, end) if has_targets else None)
            targets.append(target_ids[rows] - start if has_targets else None)
        return avoid_padding_id(self.pad, logits, targets)

    def get_log_prob(self, input: Tensor, target: Tensor | None) -> Tensor:
        """Return log-probabilities [B, T, V] of inputs [B, T, d], in at least float32.

        With targets [B, T], only the words in the first band and in the band of the target get a log-probability. All
        other words get -inf.
        """
        x = input.flatten(0, -2)
        head = self._log_softmax(self._first(x))
        log_probs = head.new_full((len(x), self.ends[-1]), float("-inf"))
        log_probs[:, : self.ends[0]] = head[:, : self.ends[0]]
        for band, (start, end) in enumerate(self._tails()):
            rows = torch.arange(len(x), device=x.device)
            rows = rows if target is None else self._rows(target.flatten(), start, end)
            inside = self._log_softmax(self._tail(x[rows], start, end))
            log_probs[rows, start:end] = inside + head[rows, self.ends[0] + band, None]
        return log_probs.unflatten(0, input.shape[:-1])

    def _tails(self) -> list[tuple[int, int]]:
        return list(zip(self.ends[:-1], self.ends[1:], strict=True))

    @staticmethod
    def _rows(target: Tensor, start: int, end: int) -> Tensor:
        return ((target >= start) & (target < end)).nonzero().squeeze(1)

    def _first(self, x: Tensor) -> Tensor:
        """Return logits of the first band's words, then one logit for each other band: [N, d] -> [N, words + bands]."""
        words = F.linear(x, self.weight[: self.ends[0]], self.bias[: self.ends[0]])
        return torch.cat([words, F.linear(x, self.band_weight, self.band_bias)], -1)

    def _tail(self, x: Tensor, start: int, end: int) -> Tensor:
        return F.linear(x, self.weight[start:end], self.bias[start:end])

    @staticmethod
    def _log_softmax(logits: Tensor) -> Tensor:
        wide = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
        return wide.log_softmax(-1)
