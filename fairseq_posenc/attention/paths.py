"""Compute attention from queries, keys and values: by the explicit formula, eagerly or compiled, or by a fused kernel.

Legend: B batch, h heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..core.compose import LayerView
from ..ops.precision import promoted
from . import formula, graphs, windows
from .choice import Choice, Mode, PathRefusedError, Projected, choose

logger = logging.getLogger(__name__)

#: The kernels of `scaled_dot_product_attention` for a mask on a GPU, and the functions that say whether the user
#: allows them. Since torch 2.11, the gradient of cuDNN's kernel contains NaN for some lengths if there is a mask
#: (pytorch issue 196678), so it is left out.
WITH_MASK = {
    SDPBackend.FLASH_ATTENTION: torch.backends.cuda.flash_sdp_enabled,
    SDPBackend.EFFICIENT_ATTENTION: torch.backends.cuda.mem_efficient_sdp_enabled,
    SDPBackend.MATH: torch.backends.cuda.math_sdp_enabled,
}


def attend(
    x: Projected,
    call: LayerView,
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
        path: `auto`, `explicit`, `fused` or `compiled`.

    Returns:
        The attended values [B, h, Q, D] and the weights after dropout, [B, h, Q, K] or None. A query without any
        allowed key gets zeros.

    Raises:
        PathRefusedError: `path` is fused or compiled, and would give wrong results or cannot run here.
        ValueError: `path` is unknown.
    """
    mode = Mode(training, dropout, need_weights)
    choice = choose(x, call, mode, path)
    if not torch.compiler.is_compiling():
        _log_once(call, choice)
    if need_weights:
        return formula.attended(x, call, dropout, exact=True)

    def on_path(x: Projected, call: LayerView) -> Tensor:
        if choice.path == "compiled":
            return _compiled(x, call, mode, path)
        return _fused(x, call, dropout) if choice.path == "fused" else formula.attended(x, call, dropout)[0]

    out = windows.attended(x, call, on_path)
    return on_path(x, call) if out is None else out, None


def _compiled(x: Projected, call: LayerView, mode: Mode, path: str) -> Tensor:
    """Compute attention by the compiled formula or, if torch cannot compile it, by the explicit one."""
    try:
        out = graphs.attended(x, call, mode.dropout, training=mode.training)
    except graphs.CompileFailedError as error:
        if path == "compiled":
            raise PathRefusedError(f"path=compiled is not possible here, because {error}: use path=auto") from error
        out, _ = formula.attended(x, call, mode.dropout)  # if this raises, the error was not one of the compiler
        call.encoding.uncompiled = f"torch could not compile it ({error})"
        _log_once(call, choose(x, call, mode, path), logging.WARNING)
    else:
        call.positions.compiled.add(call.key)
    return out


def _fused(x: Projected, call: LayerView, dropout: float) -> Tensor:
    """Compute attention by `scaled_dot_product_attention`, with the biases as a 4-D float mask.

    Torch uses a fused kernel even if the mask has four axes.
    """
    positions = call.positions
    forbidden = positions.forbidden if x.positioned else None
    bias, factor, q = call.additive(*x.raw), call.row_factor(), x.q
    width, wider = x.v.shape[-1], x.q.shape[-1] - x.v.shape[-1]
    v = F.pad(x.v, (0, wider)) if wider else x.v  # the fast kernels need values as wide as the keys
    if factor is not None:  # the factor multiplies the sum of the product and the biases
        q = (promoted(q) * factor).to(q.dtype)
        bias = None if bias is None else bias * factor
    settings: dict[str, Any] = {"scale": call.scale, "dropout_p": dropout}
    mask: Tensor | None
    if bias is None:
        square = positions.query_length == positions.key_length
        only_causal = positions.padding is None and positions.span is None and positions.documents is None
        if forbidden is not None and positions.causal and square and only_causal:
            return F.scaled_dot_product_attention(q, x.k, v, is_causal=True, **settings)[..., :width]
        mask = None if forbidden is None else ~forbidden
    else:
        # Even under no_grad, torch leaves the fused kernel if the mask requires a gradient, so detach it.
        mask = (bias if torch.is_grad_enabled() else bias.detach()).to(x.q.dtype)
        mask = mask if forbidden is None else mask.masked_fill(forbidden, float("-inf"))
        mask = mask.expand(-1, x.q.shape[1], -1, -1)
    if mask is None or x.q.device.type != "cuda":
        attended = F.scaled_dot_product_attention(q, x.k, v, attn_mask=mask, **settings)
    else:
        with sdpa_kernel([kernel for kernel, is_allowed in WITH_MASK.items() if is_allowed()]):
            attended = F.scaled_dot_product_attention(q, x.k, v, attn_mask=mask, **settings)
    attended = attended[..., :width]
    return attended if positions.empty_rows is None else attended.masked_fill(positions.empty_rows, 0.0)


def _log_once(call: LayerView, choice: Choice, level: int = logging.INFO) -> None:
    """Log the attention path once per stack and reason, instead of once per layer."""
    encoding = call.encoding
    if choice in encoding.logged:
        return
    encoding.logged.add(choice)
    text = str(choice)
    side = "decoder" if encoding.stack.causal else "encoder"
    if choice.path == "compiled":
        text += "; the first steps take some seconds longer, because torch compiles them"
    logger.log(level, "attention path of %s in the %s: %s", encoding.name, side, text)
