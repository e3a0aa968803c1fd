"""Draw the positions of tokens at random (Ruoss et al. 2023, Randomized positional encodings).

The positions of a sequence of T tokens are a random subset of 0 to N-1, in increasing order. A model that is trained on
short sequences then sees the positions and distances of sequences of up to N tokens.

Legend: B batch, K columns, N positions to draw from, M length of the longest sequence in tokens.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..positions import Positions
from .base import StackShape

#: Seed of the positions in evaluation, for an encoder and for a decoder. Any numbers would do; they must never change,
#: because the scores of trained models depend on them.
SEEDS = {False: 1, True: 2}


def drawn_positions(positions: Positions, stack: StackShape, *, training: bool) -> Positions:
    """Return `positions` with `ids` that are drawn at random.

    In training, torch's generator shuffles the numbers 0 to N-1, so their order depends on the seed of the run. A
    sample with T tokens gets the first T of these numbers, sorted. Samples with equally many tokens share
    their positions, as in the authors' code, which draws once per batch.

    In evaluation, the authors' code seeds its generator and draws new positions for every batch. This code uses the
    same seed for every batch, so the positions of a sequence depend only on its length. A decoder cannot know the
    length before it has generated all tokens, and earlier tokens must keep their positions. The positions of a decoder
    are therefore drawn once for the longest sequence, M, and a sequence of T tokens gets the first T of these
    positions.

    Raises:
        ValueError: The decoder is in training mode although earlier tokens are cached.
    """
    if training and positions.offset > positions.memory:
        raise ValueError(
            "in training mode, every call draws new positions, which do not fit the cached keys: call eval() before "
            "decoding with a cache"
        )
    order = _order(stack, training=training).to(positions.device)
    if stack.causal and not training:
        assert stack.drawn is not None
        order = order[: stack.drawn].sort().values  # sorted once, so that earlier tokens keep their positions
        chosen = order[: positions.key_length]
    else:
        chosen = _sorted_subsets(order, positions)
    return replace(positions, ids=_of_columns(chosen, positions.padding))


def _order(stack: StackShape, *, training: bool) -> Tensor:
    """Return the numbers 0 to N-1 in random order, on the CPU, so that all devices draw the same numbers."""
    generator = None if training else torch.Generator().manual_seed(SEEDS[stack.causal])
    return torch.randperm(stack.max_length, generator=generator)


def _sorted_subsets(order: Tensor, positions: Positions) -> Tensor:
    """Return the first T numbers of `order` in increasing order, [K] or, if samples differ in length T, [B, K].

    The rest of a sample's row is filled with N - 1, which no token reads.
    """
    if positions.padding is None:
        return order[: positions.key_length].sort().values
    lengths = (~positions.padding).sum(-1, keepdim=True)
    beyond = torch.arange(positions.key_length, device=order.device) >= lengths  # [B, K]
    return order[: positions.key_length].expand_as(beyond).masked_fill(beyond, len(order) - 1).sort(-1).values


def _of_columns(chosen: Tensor, padding: Tensor | None) -> Tensor:
    """Return the position of each column; `chosen` [K] or [B, K] holds the positions of the tokens, without padding."""
    if padding is None:
        return chosen
    token = (~padding).cumsum(-1).sub(1).clamp(min=0)  # [B, K]
    return chosen.expand_as(token).gather(-1, token)
