"""Draw the next token of a text from the probabilities of a language model.

Legend: B texts, V size of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .continuation import Choice, most_probable

NEVER = float("-inf")


def sampler(
    *, temperature: float, top_k: int | None, top_p: float | None, excluded: Sequence[int], generator: torch.Generator
) -> Choice:
    """Return a function that chooses the next tokens [B] by their log-probabilities [B, V].

    Args:
        temperature: Divisor of the log-probabilities; 0 chooses the most probable token.
        top_k: Number of most probable tokens to draw from; None for all.
        top_p: Probability of the smallest set of most probable tokens to draw from; None for all tokens. If `top_k` is
            also given, the probabilities of the k tokens are scaled so that they sum up to 1.
        excluded: Ids that are never chosen.
        generator: Source of random numbers, on the device of the log-probabilities.
    """

    def choose(log_probs: Tensor) -> Tensor:
        logits = log_probs.float().index_fill(1, torch.tensor(excluded, device=log_probs.device), NEVER)
        if temperature == 0:
            return most_probable(logits)
        logits = logits / temperature
        if top_k is not None and top_k < logits.shape[1]:
            best = logits.topk(top_k)
            logits = torch.full_like(logits, NEVER).scatter(1, best.indices, best.values)
        if top_p is not None:
            logits = _most_probable_set(logits, top_p)
        return torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]

    return choose


def _most_probable_set(logits: Tensor, probability: float) -> Tensor:
    """Keep the smallest set of tokens whose probabilities sum up to at least `probability` (Holtzman et al. 2020)."""
    ordered, order = logits.sort(-1, descending=True)
    probs = ordered.softmax(-1)
    dropped = probs.cumsum(-1) - probs >= probability  # the tokens before this one are enough
    dropped[:, 0] = False
    return logits.masked_fill(dropped.scatter(1, order, dropped), NEVER)
