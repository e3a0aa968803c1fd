"""Compute attention by torch's FlexAttention, a compiled kernel that changes each logit in float32 before the softmax.

FlexAttention calls a function (`score_mod`) for each pair of a query and a key. The code in this file makes such a
function from the `Terms` of the encoding, so that no tensor of all pairs is stored. `Positions` makes the block mask
once per forward pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from unittest.mock import patch
from weakref import ref

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import flex_attention as torch_flex

from ..core.terms import OfToken, Term, Terms
from ..ops.compiled import compiled, eagerly
from ..positions import Positions

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
#: A term and its table, which `score_mod` reads.
Read = tuple[Term, Tensor]


def flex(q: Tensor, k: Tensor, v: Tensor, terms: Terms, positions: Positions, scale: float) -> Tensor:
    """Compute attention with the terms of the encoding; a query without any allowed key gets zeros.

    Args:
        q, k, v: Queries q' [B, h, Q, D], keys k' [B, h, K, D] and values [B, h, K, D].
        terms: Terms by which the encoding changes the logits.
        positions: Positions, from which the mask is made.
        scale: Number by which q'·k' is multiplied.

    Returns:
        The attended values, [B, h, Q, D].
    """
    attend = kernel(q.device)
    factors, added = ([(term, term.numbers()) for term in group] for group in (terms.factors, terms.added))
    with computed_again(factors + added):
        out: Tensor = attend(
            q,
            k.to(q.dtype),
            v.to(q.dtype),
            score_mod=score_mod_of(factors, added),
            block_mask=positions.block_mask,
            scale=scale,
        )
    return out.to(v.dtype)


def score_mod_of(factors: Sequence[Read], added: Sequence[Read]) -> ScoreMod | None:
    """Return a function that gets a logit, sample, head, query row and key column, and returns the changed logit."""
    if not factors and not added:
        return None

    def score_mod(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        for term, numbers in factors:
            score = score * term.at(numbers, b, h, i, j)
        for term, numbers in added:
            score = score + term.at(numbers, b, h, i, j)
        return score

    return score_mod


def computed_again(tables: Sequence[Read]) -> AbstractContextManager[object]:
    """Return a context in which autograd does not save those `tables` that hold products of tokens with rows.

    Such a table can be larger than all other tensors of a layer. The backward pass computes such a table again from the
    queries or keys, which are saved anyway. The context changes nothing in models that torch compiles, because the
    compiler decides what is saved.
    """
    # Autograd keeps both functions below until the backward pass, so they must not hold the tables.
    products = [(term, ref(numbers)) for term, numbers in tables if isinstance(term, OfToken) and numbers.requires_grad]
    if not products or not eagerly():
        return nullcontext()

    def save(saved: Tensor) -> Tensor | OfToken:
        return next((term for term, numbers in products if _is_same(saved, numbers())), saved)

    def load(kept: Tensor | OfToken) -> Tensor:
        if isinstance(kept, Tensor):
            return kept
        with torch.no_grad():
            return kept.numbers()

    return saved_tensors_hooks(save, load)


def _is_same(x: Tensor, y: Tensor | None) -> bool:
    """Return whether two tensors are the same view of the same memory; False for the fake tensors of tracing."""
    if y is None or type(x) is not Tensor or (x.dtype, x.shape, x.stride()) != (y.dtype, y.shape, y.stride()):
        return False
    return x.data_ptr() == y.data_ptr()


def kernel(device: torch.device) -> Callable[..., Tensor]:
    """Return FlexAttention: compiled on a GPU, and uncompiled on a CPU, where it serves tests only.

    Inside a compiled model, FlexAttention becomes a part of the model's graph. Outside of a compiled model, torch first
    compiles FlexAttention for the length of the first call, because kernels for a single length are faster. When a
    second length occurs, torch compiles FlexAttention again for all lengths.
    """
    if device.type == "cpu" or torch.compiler.is_compiling():
        return torch_flex.flex_attention
    return compiled(torch_flex.flex_attention, dynamic=None)


@contextmanager
def gradients_on_a_cpu() -> Iterator[None]:
    """Let FlexAttention compute gradients on a CPU, uncompiled, for tests and for measurements of memory.

    Torch can compute these gradients, but its public function refuses them; this function disables the check. If torch
    no longer has the check, this function raises AttributeError.
    """
    torch._dynamo.reset()  # forget the graphs of earlier encodings, because torch limits their number
    with (
        patch.object(torch_flex, "_validate_device", lambda *tensors: None),
        torch._dynamo.config.patch(recompile_limit=10_000, accumulated_recompile_limit=100_000),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile", UserWarning)
        yield
