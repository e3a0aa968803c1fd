"""Copy words from the source: p = g p_vocab + (1 - g) p_copy, computed in log space.

There are two copy mechanisms, which compute the gate g and the copy scores:

- `CopyNet` (Gu et al. 2016, arXiv:1603.06393, equations 4 to 8) has one softmax over the logits of the dictionary and
  the scores of all source positions, and adds the probabilities of a word that occurs in several places. With the
  normaliser Z_vocab of the logits and Z_copy of the scores, this is g = Z_vocab / (Z_vocab + Z_copy).
- `Gate` (See et al. 2017, arXiv:1704.04368, equation 9) learns g from the decoder state.

Words that are not in the dictionary get ids from V on, separately in each sample. In a batch, E words have a
probability: the words of the dictionary, plus the largest number of unknown words in one sample.

Legend: B batch, T target tokens, S source tokens, d width, V symbols of the dictionary,
E >= V symbols including unknown words.
"""

from __future__ import annotations

import abc
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..ops.precision import exact_product, promoted

NOTHING = float("-inf")


class Copied(NamedTuple):
    """Hold the copy distribution and the gate, which mixes it with the distribution over the dictionary.

    Args:
        places: Log of the copy attention, [B, T, S]; -inf at padding.
        gate: Logit of the gate g, [B, T].
        source: Ids of the source tokens, including unknown words, [B, S].
        size: Number of words that have a probability (E).
    """

    places: Tensor
    gate: Tensor
    source: Tensor
    size: int

    def last(self, count: int) -> Copied:
        """Return a copy that contains only the last `count` target tokens."""
        return self._replace(places=self.places[:, -count:], gate=self.gate[:, -count:])


class Copier(nn.Module, abc.ABC):
    """Compute the copy attention, which is a masked softmax of copy scores, and the gate."""

    def forward(
        self, decoded: Tensor, logits: Tensor, encoded: Tensor, padding: Tensor, source: Tensor, size: int
    ) -> Copied:
        """Return the copy attention and the gate of each target token.

        Args:
            decoded: Decoder states h_dec, [B, T, d].
            logits: Logits of the dictionary, [B, T, V].
            encoded: Encoder states h_enc, [B, S, d].
            padding: [B, S] bool, true at source tokens that must not be copied.
            source: Ids of the source tokens, [B, S] int64.
            size: Number of words that have a probability (E).
        """
        scores = self.scores(decoded, encoded).masked_fill(padding[:, None], NOTHING)
        return Copied(scores.log_softmax(-1), self.gates(decoded, logits, scores), source, size)

    @abc.abstractmethod
    def scores(self, decoded: Tensor, encoded: Tensor) -> Tensor:
        """Return the copy scores [B, T, S] in at least float32."""

    @abc.abstractmethod
    def gates(self, decoded: Tensor, logits: Tensor, scores: Tensor) -> Tensor:
        """Return the logits of the gate [B, T] in at least float32; masked scores are -inf."""


class CopyNet(Copier):
    """Compute CopyNet's scores tanh(W h_enc) . h_dec, and the gate with which one softmax covers them and the logits.

    CopyNet's selective read is left out: it feeds the copy probabilities of one step into the next, so that the tokens
    of a target could not be trained in parallel.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.key = _scoring(dim)

    def scores(self, decoded: Tensor, encoded: Tensor) -> Tensor:
        return exact_product(decoded, self.key(encoded).tanh().transpose(1, 2))

    def gates(self, decoded: Tensor, logits: Tensor, scores: Tensor) -> Tensor:
        return promoted(logits).logsumexp(-1) - scores.logsumexp(-1)  # sigmoid(a - b) = exp(a) / (exp(a) + exp(b))


class Gate(Copier):
    """Compute the scores (W h_dec) . h_enc, and the learned gate g = sigmoid(w . h_dec)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.query = _scoring(dim)
        self.gate = nn.Linear(dim, 1, bias=False)

    def scores(self, decoded: Tensor, encoded: Tensor) -> Tensor:
        return exact_product(self.query(decoded), encoded.transpose(1, 2))

    def gates(self, decoded: Tensor, logits: Tensor, scores: Tensor) -> Tensor:
        return promoted(self.gate(decoded)[..., 0])


def _scoring(dim: int) -> nn.Linear:
    """Return the projection of copy scores. At first, states of unit variance give scores of about unit variance."""
    projection = nn.Linear(dim, dim, bias=False)
    nn.init.normal_(projection.weight, std=1 / dim)  # because scores are not divided by sqrt(d)
    return projection


#: The copy mechanisms of --copy-mechanism, except `none`.
MECHANISMS: dict[str, type[Copier]] = {"copynet": CopyNet, "gate": Gate}


def known(tokens: Tensor, size: int, unknown: int) -> Tensor:
    """Replace the ids of words that are not in a dictionary of `size` symbols by <unk>."""
    return tokens.masked_fill(tokens >= size, unknown)


def first_places(source: Tensor) -> Tensor:
    """Return for each source position the first position with the same word, [B, S] int64."""
    order = source.argsort(dim=1, stable=True)
    words = source.gather(1, order)
    begins = F.pad(words[:, 1:] != words[:, :-1], (1, 0), value=True)
    columns = torch.arange(source.shape[1], device=source.device).expand_as(source)
    starts = torch.where(begins, columns, 0).cummax(1).values
    return torch.empty_like(order).scatter_(1, order, order.gather(1, starts))


def _by_word(places: Tensor, first: Tensor, is_word: Tensor) -> Tensor:
    """Return the log of the sum of each word's attention weights over all of its occurrences, [B, T, S].

    The result is at the column of the word's first occurrence; all other columns are -inf.
    """
    index = first[:, None].expand_as(places)
    highest = torch.full_like(places, NOTHING).scatter_reduce_(2, index, places.detach(), "amax")
    highest = highest.clamp(min=torch.finfo(places.dtype).min)  # at padding, -inf - -inf would be NaN
    sums = torch.zeros_like(places).scatter_add(2, index, (places - highest.gather(2, index)).exp())
    total = torch.where(is_word[:, None], sums, 1).log() + highest
    return total.masked_fill(~is_word[:, None], NOTHING)


def log_probs(logits: Tensor, copied: Copied | None) -> Tensor:
    """Return the log-probability of every word, in at least float32.

    Args:
        logits: Logits of the dictionary, [B, T, V].
        copied: Copy attention and gate; None for a model that does not copy.
    Returns:
        Log-probabilities [B, T, E]; -inf for unknown words that are not in the source of the sample.
    """
    log_vocab = promoted(logits).log_softmax(-1)
    if copied is None:
        return log_vocab
    source, first = copied.source, first_places(copied.source)
    columns = torch.arange(source.shape[1], device=source.device)
    is_word = (first == columns) & copied.places[:, 0].isfinite()
    log_vocab = F.logsigmoid(copied.gate)[..., None] + log_vocab
    log_vocab = F.pad(log_vocab, (0, copied.size - log_vocab.shape[-1]), value=NOTHING)
    log_vocab = F.pad(log_vocab, (0, 1))  # Positions that are not the first of a word write to this extra column.
    index = torch.where(is_word, source, copied.size)[:, None].expand_as(copied.places)
    log_copy = F.logsigmoid(-copied.gate)[..., None] + _by_word(copied.places, first, is_word)
    # Contiguous, because fairseq's diverse and constrained beam searches call `view` on the result.
    mixed = log_vocab.scatter(2, index, torch.logaddexp(log_vocab.gather(2, index), log_copy))
    return mixed[..., :-1].contiguous()


def target_log_probs(logits: Tensor, copied: Copied | None, target: Tensor) -> Tensor:
    """Return the log-probabilities of the targets, without computing the probabilities of all words.

    Args:
        logits: Logits of the dictionary, [B, T, V].
        copied: Copy attention and gate; None for a model that does not copy.
        target: Target ids, [B, T] int64, less than E.
    Returns:
        Log-probabilities of the targets, [B, T].
    """
    size = logits.shape[-1]
    if copied is None:
        return -F.cross_entropy(promoted(logits).flatten(0, 1), target.flatten(), reduction="none").view_as(target)
    # Use a finite number instead of -inf, because sums of -inf have no gradients. No log-softmax is as small.
    almost_zero = torch.finfo(copied.places.dtype).min / 4
    in_dictionary = target < size
    inside = torch.where(in_dictionary, target, 0)
    log_vocab = -F.cross_entropy(promoted(logits).flatten(0, 1), inside.flatten(), reduction="none").view_as(target)
    log_vocab = F.logsigmoid(copied.gate) + log_vocab.masked_fill(~in_dictionary, almost_zero)
    is_copyable = (copied.source[:, None] == target[..., None]) & copied.places[:, :1].isfinite()  # [B, T, S]
    log_copy = F.logsigmoid(-copied.gate) + copied.places.masked_fill(~is_copyable, almost_zero).logsumexp(-1)
    return torch.logaddexp(log_vocab, log_copy).masked_fill(~(in_dictionary | is_copyable.any(-1)), NOTHING)
