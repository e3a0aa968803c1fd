"""Compute attention by torch's FlexAttention, a compiled kernel that changes each logit in float32 before the softmax.

FlexAttention calls a function (`score_mod`) for each pair of a query and a key. The code in this file makes such a
function from the `Terms` of the encoding, so that no tensor of all pairs is stored. `Positions` makes the block mask
once per forward pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn.attention import flex_attention as torch_flex

from ..core.terms import Terms
from ..ops.compiled import compiled
from ..positions import Positions

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def score_mod_of(terms: Terms) -> ScoreMod | None:
    """Return the function from a logit, sample, head, row of the query and column of the key to the changed logit."""
    factors = [(term, term.numbers()) for term in terms.factors]
    added = [(term, term.numbers()) for term in terms.added]
    if not factors and not added:
        return None

    def score_mod(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        for term, numbers in factors:
            score = score * term.at(numbers, b, h, i, j)
        for term, numbers in added:
            score = score + term.at(numbers, b, h, i, j)
        return score

    return score_mod


def flex(q: Tensor, k: Tensor, v: Tensor, terms: Terms, positions: Positions, scale: float) -> Tensor:
    """Compute attention with the terms of the encoding; a query without any allowed key gets zeros.

    Args:
        q, k, v: Queries q' [B, h, Q, D], keys k' [B, h, K, D] and values [B, h, K, D].
        terms: What the encoding does to the logits.
        positions: Positions, from which the mask is made.
        scale: Number by which q'·k' is multiplied.

    Returns:
        The attended values, [B, h, Q, D].
    """
    attend = kernel(q.device)
    out: Tensor = attend(
        q, k.to(q.dtype), v.to(q.dtype), score_mod=score_mod_of(terms), block_mask=positions.block_mask, scale=scale
    )
    return out.to(v.dtype)


def kernel(device: torch.device) -> Callable[..., Tensor]:
    """Return FlexAttention: compiled on a GPU, and uncompiled on a CPU, where it serves tests only.

    Inside a compiled model, it becomes a part of the model's graph. Outside of a compiled model, torch first compiles
    FlexAttention for the length of the first call, because kernels for a single length are faster. When a second length
    occurs, torch compiles it again for all lengths.
    """
    if device.type == "cpu" or torch.compiler.is_compiling():
        return torch_flex.flex_attention
    return compiled(torch_flex.flex_attention, dynamic=None)


@contextmanager
def gradients_on_a_cpu() -> Iterator[None]:
    """Let FlexAttention compute gradients on a CPU, uncompiled, for tests and counts.

    Torch can compute these gradients, but a check in the public function of torch refuses to; this function disables
    the check. If torch no longer has the check, this function raises AttributeError.
    """
    torch._dynamo.reset()  # forget the graphs of earlier encodings, because torch limits their number
    with (
        patch.object(torch_flex, "_validate_device", lambda *tensors: None),
        torch._dynamo.config.patch(recompile_limit=10_000, accumulated_recompile_limit=100_000),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile", UserWarning)
        yield
