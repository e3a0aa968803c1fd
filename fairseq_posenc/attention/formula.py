"""Compute attention by the explicit formula: plain operations that say what is computed.

On a CPU, the formula runs eagerly. On a GPU, torch compiles it (graphs.py).

Legend: B batch, h heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..core.compose import LayerView
from ..ops.compiled import own_gradients
from ..ops.content import Content, of_values
from ..ops.precision import HALF, cast, promoted
from .choice import Projected

#: Float32 numbers in one AVX-512 register. Torch's softmax on a CPU does not vectorise shorter rows.
SHORT = 16
#: Bounds of the number of keys. Torch makes different graphs below, between and above them.
BOUNDS = (512, 1024)


def attended(x: Projected, call: LayerView, dropout: float = 0.0, *, exact: bool = False) -> tuple[Tensor, Tensor]:
    """Return the attended values [B, h, Q, D], and the attention weights after dropout, [B, h, Q, K].

    A query without any allowed key gets zeros.

    Args:
        x: Queries, keys and values.
        call: The encoding's hooks at the positions of this forward pass.
        dropout: Dropout probability of the weights.
        exact: Whether the weights are needed in at least float32. Otherwise they have the dtype of the values.
    """
    weights = explicit_weights(x, call, None if exact else x.v.dtype)
    weights = F.dropout(weights, dropout) if dropout else weights
    rounded = cast(weights, x.v.dtype)
    out = of_values(rounded, x.v)
    extra = call.values(rounded)
    return (out if extra is None else out + extra), weights


def explicit_weights(x: Projected, call: LayerView, dtype: torch.dtype | None = None) -> Tensor:
    """Return the attention weights before dropout, [B, h, Q, K], with zeros for queries without an allowed key.

    The softmax is computed in at least float32. By default, the weights have the same dtype.
    """
    scores = logits(x, call)
    forbidden = call.positions.forbidden if x.positioned else None
    scores = scores if forbidden is None else scores.masked_fill(forbidden, float("-inf"))
    weights = softmax(scores, scores.dtype if dtype is None else dtype)
    empty = call.positions.empty_rows  # also with compressed keys, for a sample that is padding only
    return weights if empty is None else weights.masked_fill(empty, 0.0)


def logits(x: Projected, call: LayerView) -> Tensor:
    """Return the logits before the mask, [B, h, Q, K], in at least float32."""
    terms, factor = _terms(x, call), call.row_factor()
    return terms if factor is None else terms * factor.to(terms.dtype)


def _terms(x: Projected, call: LayerView) -> Tensor:
    """Return the sum of all terms of the logits, [B, h, Q, K], in at least float32."""
    if call.has("adapt"):
        return _adapted(x, call)
    scores = call.scores(*x.raw)
    if scores is not None:
        return _added(promoted(scores), call.additive(*x.raw))
    content = Content(x.q, x.k, call.scale)
    extra = call.additive(*x.raw, content)
    if content.taken:
        assert extra is not None
        return extra
    return _added(content.product(), extra)


def _adapted(x: Projected, call: LayerView) -> Tensor:
    """Return the logits with the terms of `adapt`, which reads content and biases separately."""
    scores, bias = call.scores(*x.raw), call.additive(*x.raw)
    content = Content(x.q, x.k, call.scale).product() if scores is None else promoted(scores)
    assert bias is not None, "a composition refuses `adapt` without a bias"
    return _added(_added(content, bias), call.adapt(content, bias))


def _added(content: Tensor, extra: Tensor | None) -> Tensor:
    return content if extra is None else content + cast(extra, content.dtype)


def softmax(scores: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the softmax over the keys in the given dtype, in which it is also kept for the backward pass."""
    if dtype in HALF and scores.requires_grad and own_gradients():
        weights: Tensor = _RoundedSoftmax.apply(scores, dtype)
        return weights
    return cast(_softmax(scores), dtype)


class _RoundedSoftmax(torch.autograd.Function):
    """Compute the softmax in float32, and keep only the rounded weights for the backward pass."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, dtype: torch.dtype) -> Tensor:
        weights = _softmax(scores).to(dtype)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        weights = promoted(ctx.saved_tensors[0])
        product = weights * grad
        return product - weights * product.sum(-1, keepdim=True), None


def _softmax(scores: Tensor) -> Tensor:
    """Return the softmax over the keys.

    On a CPU, torch does not vectorise the softmax of rows that are shorter than a vector register. This function
    transposes short rows first, because the softmax over columns is always vectorised.
    """
    if torch.compiler.is_compiling() and own_gradients():
        _bound(scores.shape[-1])
    if torch.compiler.is_compiling() or scores.device.type != "cpu" or scores.shape[-1] >= SHORT:
        return scores.softmax(-1)
    columns = scores.flatten(0, -2).t().contiguous()  # [K, B h Q]
    return columns.softmax(0).t().contiguous().view(scores.shape)


def _bound(columns: int) -> None:
    """Compare the length of rows with the bounds, so that torch makes a graph of its own for each range of lengths.

    If torch knows that rows are short, a GPU keeps them in registers (rows.py). Torch notes each comparison while it
    traces this function, so nobody needs the result.
    """
    any(columns <= bound for bound in BOUNDS)
