"""Choose the path by which attention is computed, and give the reasons.

Legend: B batch, h heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils._triton import has_triton

from ..core.compose import LayerCall
from ..core.terms import Terms
from ..ops.precision import HALF

PATHS = ("auto", "explicit", "fused", "flex")
NAMES = {"fused": "fused scaled_dot_product_attention", "flex": "flex_attention"}
#: Hooks that the fused kernel cannot compute, and what they do.
UNFUSED = {
    "scores": "the encoding replaces the product of query and key",
    "adapt": "the encoding adapts biases to the product of query and key",
    "values": "the encoding adds a term to the values",
}
#: The first version of torch for which FlexAttention was tested. Some earlier versions cannot compute gradients of
#: tables.
FLEX_SINCE = "2.8"
#: Smallest width of heads that FlexAttention compiles for a GPU.
LEAST_WIDTH = 16
#: Memory that the explicit path of a model in half precision keeps for each query-key pair until the backward pass, in
#: numbers of float32: the weights in two precisions and, for factors, the content and the factors (counted, see
#: docs/attention-memory.md).
KEPT_BY_SUMS, KEPT_BY_FACTORS = 1.5, 5.5


@dataclass(frozen=True)
class Projected:
    """Hold the queries, keys and values of one layer.

    Args:
        q, k: Queries q' [B, h, Q, D] and keys k' [B, h, K, D], after the hooks `project_q` and `project_k`.
        v: Values, [B, h, K, D].
        raw_q, raw_k: Queries and keys before the hooks `project_q` and `project_k`.
        positioned: False if the keys were compressed. Compressed keys do not belong to columns, so no mask applies to
            them.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    raw_q: Tensor
    raw_k: Tensor
    positioned: bool = True


class Mode(NamedTuple):
    """Describe what the caller of the attention needs; see `paths.attend`."""

    training: bool = False
    dropout: float = 0.0
    need_weights: bool = False


class Choice(NamedTuple):
    """Hold the chosen path, the reasons why preferred paths were not chosen, and the terms for FlexAttention.

    On a GPU, the order of preference is flex, fused, explicit; on a CPU, it is fused, explicit. The terms are None if
    they were not needed for the choice.
    """

    path: str
    reason: str = ""
    terms: Terms | None = None

    def __str__(self) -> str:
        name = NAMES.get(self.path, self.path)
        return f"{name} ({self.reason})" if self.reason else name


class PathRefusedError(ValueError):
    """Say why the path `fused` or `flex`, which the caller requested, cannot be used."""


class Place(NamedTuple):
    """Describe whether attention is computed on a GPU, and whether Triton can compile kernels for this device."""

    on_gpu: bool
    triton: bool

    @classmethod
    def of(cls, device: torch.device) -> Place:
        """Return the `Place` that describes this device."""
        on_gpu = device.type == "cuda"
        return cls(on_gpu, on_gpu and has_triton())


def choose(x: Projected, call: LayerCall, mode: Mode, path: str = "auto", place: Place | None = None) -> Choice:
    """Return the path for one layer.

    Args:
        x: Queries, keys and values.
        call: The encoding's hooks at the positions of this forward pass.
        mode: What the caller needs.
        path: One of `PATHS`.
        place: Where attention is computed; None means the device of x.

    Raises:
        PathRefusedError: `path` is fused or flex, and would give wrong results or cannot run here.
        ValueError: `path` is unknown.
    """
    if path not in PATHS:
        raise ValueError(f"path must be one of {', '.join(PATHS)}, but it is {path!r}")
    place = place or Place.of(x.q.device)
    if path == "explicit":
        return Choice(path, "path=explicit is set")
    if path != "auto":
        reason = _cannot_fuse(x, call, mode) if path == "fused" else _cannot_flex(x, call, mode, place)
        if reason:
            raise PathRefusedError(f"path={path} is not possible here, because {reason}: use path=auto")
        return Choice(path)
    if not place.on_gpu:
        reason = _cannot_fuse(x, call, mode) or _better_explicit(x, call, mode)
        return Choice("explicit", reason) if reason else Choice("fused")
    no_flex, terms = _no_flex(x, call, mode, place)
    if terms is not None:
        return Choice("flex", "", terms)
    reason = _cannot_fuse(x, call, mode) or _not_repeatable(mode)
    if not reason:
        return Choice("fused", f"not flex: {no_flex}")
    return Choice("explicit", reason if reason == no_flex else f"{reason}; not flex: {no_flex}")


def _cannot_fuse(x: Projected, call: LayerCall, mode: Mode) -> str:
    """Return the reason why the fused kernel would give wrong results, or an empty text if the kernel is exact."""
    if mode.need_weights:
        return "the caller needs the attention weights"
    for hook, text in UNFUSED.items():
        if call.view.has(hook):
            return text
    biased = call.view.has("bias") or call.view.has("content_bias")
    if biased and x.q.dtype in HALF:
        return "the kernel would round the position terms to half precision"
    return ""


def _cannot_flex(x: Projected, call: LayerCall, mode: Mode, place: Place) -> str:
    """Return the reason why FlexAttention cannot compute this attention, or an empty text if it can."""
    on_gpu = place.on_gpu
    reasons = {
        f"FlexAttention needs torch {FLEX_SINCE} or newer": torch.__version__ < FLEX_SINCE,
        "the caller needs the attention weights": mode.need_weights,
        "FlexAttention has no attention dropout": mode.dropout > 0,
        "the keys are compressed": not x.positioned,
        "the caller gives positions, so distances do not follow from the columns": call.positions.ids is not None,
        "the encoding adds a term to the values": call.view.has("values"),
        f"FlexAttention cannot compute the logits of {', '.join(call.without_terms)}": bool(call.without_terms),
        "FlexAttention trains on a GPU only": not on_gpu and mode.training,
        "FlexAttention has no float64 on a GPU": on_gpu and x.q.dtype == torch.float64,
        "the backward pass of FlexAttention is not deterministic": bool(_not_repeatable(mode)),
        f"FlexAttention needs a head width of at least {LEAST_WIDTH} on a GPU": on_gpu and x.q.shape[-1] < LEAST_WIDTH,
        "on a GPU, FlexAttention needs Triton, which is not installed": on_gpu and not place.triton,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _no_flex(x: Projected, call: LayerCall, mode: Mode, place: Place) -> tuple[str, Terms | None]:
    """Return the reason why another path is better on a GPU, or the terms for FlexAttention.

    This function compares how many numbers FlexAttention and the explicit path need for a layer. FlexAttention reads
    `terms.width` numbers in float32 for each sample, head and token. FlexAttention does not keep these numbers, so the
    backward pass computes all of them again, and a gradient for each number. If every token has a number for each
    distance, the explicit path needs less memory.
    """
    reason = _cannot_flex(x, call, mode, place)
    if reason:
        return reason, None
    if not any(call.view.has(hook) for hook in ("bias", "content_bias", "scores")):
        return "the encoding adds nothing to the logits", None
    if call.positions.query_length == 1:
        return "the logits of a single query take little memory", None
    terms = call.terms(x.raw_q, x.raw_k)
    kept = KEPT_BY_FACTORS if terms.factors else KEPT_BY_SUMS
    if terms.width > kept * call.positions.key_length:
        text = f"FlexAttention would read {terms.width} numbers for each token and head"
        return f"{text}, which take more memory than the explicit path needs for a layer", None
    return "", terms


def _not_repeatable(mode: Mode) -> str:
    """Return the reason against the fused kernel if training must be deterministic, or an empty text."""
    deterministic = mode.training and torch.are_deterministic_algorithms_enabled()
    return "the backward pass of the fused kernel is not deterministic" if deterministic else ""


def _better_explicit(x: Projected, call: LayerCall, mode: Mode) -> str:
    """Return the reason why the fused kernel would not be faster on a CPU, or an empty text if it would be.

    On a CPU, torch uses a fused kernel only without dropout and without gradients of the bias.
    """
    if mode.training:
        return "the fused path is not faster than the explicit path in training on a CPU"
    if torch.is_grad_enabled() and any(t.requires_grad for t in (x.q, x.k, x.v, *call.tensors.values())):
        return "the fused path is not faster than the explicit path on a CPU if gradients are needed"
    if mode.dropout:
        return "the fused path is not faster than the explicit path on a CPU with attention dropout"
    if call.positions.query_length == 1:
        return "the explicit path is faster for a single query on a CPU"
    return ""
