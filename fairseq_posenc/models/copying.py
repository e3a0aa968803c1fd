"""Copying from the source: p = g p_vocab + (1 - g) p_copy, in log space.

See et al. 2017 (arXiv:1704.04368), equation 9, with the scores and the gate of METHODS.md 6.C. Words that the
dictionary does not have get ids behind it, counted anew in each sample; a batch's probabilities cover the dictionary
and the most such words of its samples.

Legend: B batch, T target tokens, S source tokens, d width, V dictionary, E >= V dictionary and unknown words.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..ops.precision import exact_product, promoted

NOTHING = float("-inf")


class Copied(NamedTuple):
    """What is needed beside the logits of the dictionary.

    Args:
        places: log of the copy attention, [B, T, S], -inf at pads.
        gate: the logit of g, [B, T].
        source: ids with those of unknown words, [B, S].
        size: E.
    """

    places: Tensor
    gate: Tensor
    source: Tensor
    size: int

    def last(self, count: int) -> Copied:
        """The same of the last `count` target tokens."""
        return self._replace(places=self.places[:, -count:], gate=self.gate[:, -count:])


class Copier(nn.Module):
    """Scores (W h_dec) . h_enc, whose masked softmax is the copy attention, and the gate g = sigmoid(w . h_dec)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(dim, dim, bias=False)
        self.gate = nn.Linear(dim, 1, bias=False)
        # the scores are not divided by sqrt(d): of states of unit variance they begin with variance 1 all the same
        nn.init.normal_(self.query.weight, std=1 / dim)

    def forward(self, decoded: Tensor, encoded: Tensor, padding: Tensor, source: Tensor, size: int) -> Copied:
        """What is copied.

        Args:
            decoded: h_dec, [B, T, d]. encoded: h_enc, [B, S, d]. padding: [B, S] bool, true at pads.
            source: [B, S] int64. size: E.
        """
        scores = exact_product(self.query(decoded), encoded.transpose(1, 2))  # [B, T, S]
        places = scores.masked_fill(padding[:, None], NOTHING).log_softmax(-1)
        return Copied(places, promoted(self.gate(decoded)[..., 0]), source, size)


def known(tokens: Tensor, size: int, unknown: int) -> Tensor:
    """Words behind a dictionary of `size` are <unk>."""
    return tokens.masked_fill(tokens >= size, unknown)


def first_places(source: Tensor) -> Tensor:
    """[B, S] int64: for each place of the source, the first with the same word."""
    order = source.argsort(dim=1, stable=True)
    words = source.gather(1, order)
    begins = F.pad(words[:, 1:] != words[:, :-1], (1, 0), value=True)
    columns = torch.arange(source.shape[1], device=source.device).expand_as(source)
    starts = torch.where(begins, columns, 0).cummax(1).values
    return torch.empty_like(order).scatter_(1, order, order.gather(1, starts))


def _by_word(places: Tensor, first: Tensor, is_word: Tensor) -> Tensor:
    """[B, T, S]: at the first place of a word the log of its attention in all places, elsewhere -inf."""
    index = first[:, None].expand_as(places)
    highest = torch.full_like(places, NOTHING).scatter_reduce_(2, index, places.detach(), "amax")
    highest = highest.clamp(min=torch.finfo(places.dtype).min)  # pads: -inf less -inf is no number
    sums = torch.zeros_like(places).scatter_add(2, index, (places - highest.gather(2, index)).exp())
    total = torch.where(is_word[:, None], sums, 1).log() + highest
    return total.masked_fill(~is_word[:, None], NOTHING)


def log_probs(logits: Tensor, copied: Copied | None) -> Tensor:
    """log p of every word, in at least float32.

    Args:
        logits: of the dictionary, [B, T, V]. copied: None: nothing is.
    Returns:
        [B, T, E]; of unknown words that are not in a sample's source -inf.
    """
    made = promoted(logits).log_softmax(-1)
    if copied is None:
        return made
    source, first = copied.source, first_places(copied.source)
    columns = torch.arange(source.shape[1], device=source.device)
    is_word = (first == columns) & copied.places[:, 0].isfinite()
    made = F.pad(F.logsigmoid(copied.gate)[..., None] + made, (0, copied.size - made.shape[-1]), value=NOTHING)
    made = F.pad(made, (0, 1))  # what is no word's first place writes to a column of its own
    index = torch.where(is_word, source, copied.size)[:, None].expand_as(copied.places)
    share = F.logsigmoid(-copied.gate)[..., None] + _by_word(copied.places, first, is_word)
    # contiguous: fairseq's diverse and constrained beam searches take views of it
    return made.scatter(2, index, torch.logaddexp(made.gather(2, index), share))[..., :-1].contiguous()


def target_log_probs(logits: Tensor, copied: Copied | None, target: Tensor) -> Tensor:
    """`log_probs` of the targets only, without a number for each word.

    Args:
        logits: [B, T, V]. target: [B, T] int64, below E.
    Returns:
        [B, T].
    """
    size = logits.shape[-1]
    if copied is None:
        return -F.cross_entropy(promoted(logits).flatten(0, 1), target.flatten(), reduction="none").view_as(target)
    # a finite number in place of -inf, whose sums have no gradients; no softmax comes near it
    closed = torch.finfo(copied.places.dtype).min / 4
    listed = target < size
    inside = torch.where(listed, target, 0)
    spoken = -F.cross_entropy(promoted(logits).flatten(0, 1), inside.flatten(), reduction="none").view_as(target)
    spoken = F.logsigmoid(copied.gate) + spoken.masked_fill(~listed, closed)
    there = (copied.source[:, None] == target[..., None]) & copied.places[:, :1].isfinite()  # [B, T, S]
    shared = F.logsigmoid(-copied.gate) + copied.places.masked_fill(~there, closed).logsumexp(-1)
    return torch.logaddexp(spoken, shared).masked_fill(~(listed | there.any(-1)), NOTHING)
