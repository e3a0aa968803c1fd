"""Queries, keys and values to attended values: the explicit path and the fused one.

Legend: B batch, h heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

import functools
import logging

import torch
from torch import Tensor
from torch.nn import functional as F

from ..encodings.compose import LayerCall

logger = logging.getLogger(__name__)

HALF = (torch.float16, torch.bfloat16)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    raw_q: Tensor,
    raw_k: Tensor | None,
    call: LayerCall,
    *,
    dropout: float = 0.0,
    need_weights: bool = False,
    path: str = "auto",
    positioned: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Attention of one layer.

    Args:
        q, k: q' [B, h, Q, D] and k' [B, h, K, D], after `project_*`. v: [B, h, K, D].
        raw_q, raw_k: the same before `project_*`; raw_k only where an encoding reads keys.
        call: the encoding's hooks at this forward's positions.
        dropout: the probability of dropping a weight, already 0 in evaluation.
        need_weights: return the weights too, which takes the explicit path.
        path: auto, explicit or fused.
        positioned: false where the keys were compressed: no mask then, as keys have no columns.
    Returns:
        [B, h, Q, D] and the weights after dropout [B, h, Q, K] or None. A query without any allowed key
        gets zeros.
    Raises:
        ValueError: path=fused where only the explicit path is exact.
    """
    reason = _why_explicit(q, k, v, call, dropout, need_weights)
    if path == "fused" and reason:
        raise ValueError(f"the fused path cannot serve this: {reason}")
    _log_once(str(call.view.encoding), reason if path == "auto" else f"path={path} was asked for")
    forbidden = call.positions.forbidden if positioned else None
    if path != "explicit" and not reason:
        return _fused(q, k, v, raw_q, raw_k, call, forbidden), None
    weights = explicit_weights(q, k, raw_q, raw_k, call, forbidden)
    weights = F.dropout(weights, dropout) if dropout else weights
    cast = weights.to(v.dtype)
    attended = torch.matmul(cast, v)
    extra = call.values(cast)
    return (attended if extra is None else attended + extra), (weights if need_weights else None)


def logits(q: Tensor, k: Tensor, raw_q: Tensor, raw_k: Tensor | None, call: LayerCall) -> Tensor:
    """[B, h, Q, K] before the mask, in at least float32."""
    content = call.scores(raw_q, k)
    if content is None:
        content = torch.matmul(q * call.view.scale, k.transpose(-1, -2))
    content = content.float() if content.dtype in HALF else content
    extra = call.additive(raw_q, raw_k)
    return content if extra is None else content + extra.to(content.dtype)


def explicit_weights(
    q: Tensor, k: Tensor, raw_q: Tensor, raw_k: Tensor | None, call: LayerCall, forbidden: Tensor | None
) -> Tensor:
    """[B, h, Q, K], the softmax; rows without an allowed key are zero."""
    scores = logits(q, k, raw_q, raw_k, call)
    scores = scores if forbidden is None else scores.masked_fill(forbidden, float("-inf"))
    weights = scores.softmax(-1)
    empty = call.positions.empty_rows  # also where keys were compressed: a sample of pads only
    return weights if empty is None else weights.masked_fill(empty, 0.0)


def _fused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    raw_q: Tensor,
    raw_k: Tensor | None,
    call: LayerCall,
    forbidden: Tensor | None,
) -> Tensor:
    """SDPA with a 4-D float bias: the kernel stays fused for such masks, detached (PERFORMANCE.md)."""
    bias = call.additive(raw_q, raw_k)
    where = call.positions
    plain_causal = forbidden is not None and bias is None and where.padding is None and where.span is None
    mask: Tensor | None
    if plain_causal and where.query_length == where.key_length:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=call.view.scale)
    if bias is None:
        mask = None if forbidden is None else ~forbidden
    else:
        mask = bias.detach().to(q.dtype)
        mask = mask if forbidden is None else mask.masked_fill(forbidden, float("-inf"))
        mask = mask.expand(-1, q.shape[1], -1, -1)
    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=call.view.scale)
    empty = where.empty_rows
    return attended if empty is None else attended.masked_fill(empty, 0.0)


def _why_explicit(q: Tensor, k: Tensor, v: Tensor, call: LayerCall, dropout: float, need_weights: bool) -> str:
    """Why the fused kernel cannot be used; empty where it can."""
    if need_weights:
        return "attention weights were asked for"
    if torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        return "gradients are needed, for which the explicit path costs the same and gives the bias its own"
    if dropout:
        return "attention dropout"
    for hook, text in (("scores", "replaces the product of query and key"), ("values", "adds to the values")):
        if call.view.has(hook):
            return f"the encoding {text}"
    biased = call.view.has("bias") or call.view.has("content_bias")
    if biased and q.dtype in HALF:
        return "half precision would round the position terms"
    return ""


@functools.cache
def _log_once(encoding: str, reason: str) -> None:
    path = f"explicit ({reason})" if reason else "fused scaled_dot_product_attention"
    logger.info("attention path of %s: %s", encoding, path)
