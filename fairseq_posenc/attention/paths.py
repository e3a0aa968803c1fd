"""Compute attention from queries, keys and values, by plain operations (explicit path) or torch's fused kernels.

Legend: B batch, h heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..core.compose import LayerCall
from ..ops.content import Content, of_values
from ..ops.precision import promoted
from .choice import Choice, Mode, Projected, choose
from .flex import flex

logger = logging.getLogger(__name__)

#: Float32 numbers in one AVX-512 register. Torch's softmax on a CPU does not vectorise shorter rows.
SHORT = 16


def attend(
    x: Projected,
    call: LayerCall,
    *,
    training: bool = False,
    dropout: float = 0.0,
    need_weights: bool = False,
    path: str = "auto",
) -> tuple[Tensor, Tensor | None]:
    """Compute the attention of one layer.

    Args:
        x: Queries, keys and values.
        call: The encoding's hooks at the positions of this forward pass.
        training: Whether the module is in training mode. If so, the choice of the path does not depend on whether
            gradients are enabled, because activation checkpointing runs the first forward pass without gradients.
        dropout: Dropout probability of the weights; the caller passes 0 in evaluation.
        need_weights: Whether to return the weights too, which only the explicit path can do.
        path: `auto`, `explicit`, `fused` or `flex`.

    Returns:
        The attended values [B, h, Q, D] and the weights after dropout, [B, h, Q, K] or None. A query without any
        allowed key gets zeros.

    Raises:
        PathRefusedError: `path` is fused or flex, and would give wrong results or cannot run here.
        ValueError: `path` is unknown.
    """
    choice = choose(x, call, Mode(training, dropout, need_weights), path)
    if not torch.compiler.is_compiling():
        _log_once(call, choice)
    if choice.path == "flex":
        terms = choice.terms or call.terms(x.raw_q, x.raw_k)
        return flex(x.q, x.k, x.v, terms, call.positions, call.view.scale), None
    if choice.path == "fused":
        return _fused(x, call, dropout), None
    weights = explicit_weights(x, call)
    weights = F.dropout(weights, dropout) if dropout else weights
    cast = weights.to(x.v.dtype)
    attended = of_values(cast, x.v)
    extra = call.values(cast)
    return (attended if extra is None else attended + extra), (weights if need_weights else None)


def logits(x: Projected, call: LayerCall) -> Tensor:
    """Return the logits before the mask, [B, h, Q, K], in at least float32."""
    if call.view.has("adapt"):
        return _adapted(x, call)
    scores = call.scores(x.raw_q, x.raw_k)
    if scores is not None:
        return _added(promoted(scores), call.additive(x.raw_q, x.raw_k))
    content = Content(x.q, x.k, call.view.scale)
    extra = call.additive(x.raw_q, x.raw_k, content)
    if content.taken:
        assert extra is not None
        return extra
    return _added(content.product(), extra)


def _adapted(x: Projected, call: LayerCall) -> Tensor:
    """Return the logits with the terms of `adapt`, which reads content and biases separately."""
    scores, bias = call.scores(x.raw_q, x.raw_k), call.additive(x.raw_q, x.raw_k)
    content = Content(x.q, x.k, call.view.scale).product() if scores is None else promoted(scores)
    assert bias is not None, "a composition refuses `adapt` without a bias"
    return _added(_added(content, bias), call.adapt(content, bias))


def _added(content: Tensor, extra: Tensor | None) -> Tensor:
    return content if extra is None else content + extra.to(content.dtype)


def explicit_weights(x: Projected, call: LayerCall) -> Tensor:
    """Return the attention weights before dropout, [B, h, Q, K], with zeros for queries without an allowed key."""
    scores = logits(x, call)
    forbidden = call.positions.forbidden if x.positioned else None
    scores = scores if forbidden is None else scores.masked_fill(forbidden, float("-inf"))
    weights = _softmax(scores)
    empty = call.positions.empty_rows  # also with compressed keys, for a sample that is padding only
    return weights if empty is None else weights.masked_fill(empty, 0.0)


def _softmax(scores: Tensor) -> Tensor:
    """Return the softmax over the keys.

    On a CPU, torch does not vectorise the softmax of rows that are shorter than a vector register. This function
    transposes short rows first, because the softmax over columns is always vectorised.
    """
    if scores.device.type != "cpu" or torch.compiler.is_compiling() or scores.shape[-1] >= SHORT:
        return scores.softmax(-1)
    columns = scores.flatten(0, -2).t().contiguous()  # [K, B h Q]
    return columns.softmax(0).t().contiguous().view(scores.shape)


def _fused(x: Projected, call: LayerCall, dropout: float) -> Tensor:
    """Compute attention by `scaled_dot_product_attention`, with the biases as a 4-D float mask.

    Torch uses a fused kernel even if the mask has four axes.
    """
    positions = call.positions
    forbidden = positions.forbidden if x.positioned else None
    bias = call.additive(x.raw_q, x.raw_k)
    settings: dict[str, Any] = {"scale": call.view.scale, "dropout_p": dropout}
    mask: Tensor | None
    if bias is None:
        square = positions.query_length == positions.key_length
        only_causal = positions.padding is None and positions.span is None and positions.documents is None
        if forbidden is not None and square and only_causal:
            return F.scaled_dot_product_attention(x.q, x.k, x.v, is_causal=True, **settings)
        mask = None if forbidden is None else ~forbidden
    else:
        # Even under no_grad, torch leaves the fused kernel if the mask requires a gradient, so detach it.
        mask = (bias if torch.is_grad_enabled() else bias.detach()).to(x.q.dtype)
        mask = mask if forbidden is None else mask.masked_fill(forbidden, float("-inf"))
        mask = mask.expand(-1, x.q.shape[1], -1, -1)
    attended = F.scaled_dot_product_attention(x.q, x.k, x.v, attn_mask=mask, **settings)
    return attended if positions.empty_rows is None else attended.masked_fill(positions.empty_rows, 0.0)


def _log_once(call: LayerCall, choice: Choice) -> None:
    """Log the attention path once per stack and reason, instead of once per layer."""
    encoding, text = call.view.encoding, str(choice)
    if text not in encoding.logged:
        encoding.logged.add(text)
        side = "decoder" if encoding.stack.causal else "encoder"
        logger.info("attention path of %s in the %s: %s", encoding.name, side, text)
