"""Choose the path by which attention is computed, and give the reasons.

Legend: B batch, h heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.compose import LayerView
from ..core.refusal import InputError
from ..ops.compiled import eagerly
from ..ops.precision import HALF

PATHS = ("auto", "explicit", "fused", "compiled")
NAMES = {"fused": "fused scaled_dot_product_attention"}
#: Hooks that the fused kernel cannot compute, and what they do.
UNFUSED = {
    "scores": "the encoding replaces the product of query and key",
    "adapt": "the encoding adapts biases to the product of query and key",
    "values": "the encoding adds a term to the values",
}


@dataclass(frozen=True)
class Projected:
    """Hold the queries, keys and values of one layer.

    Args:
        q, k: Queries q' [B, h, Q, D] and keys k' [B, h, K, D], after the hooks `project_q` and `project_k`.
        v: Values, [B, h, K, D].
        raw_q, raw_k: Queries and keys before the hooks `project_q` and `project_k`; None if the hooks change nothing.
        positioned: False if the keys were compressed. Compressed keys do not belong to columns, so no mask applies to
            them.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    raw_q: Tensor | None = None
    raw_k: Tensor | None = None
    positioned: bool = True

    def __post_init__(self) -> None:
        """Store None if a raw tensor is the projected one itself; a graph must not depend on whether they are one."""
        for name, raw, projected in (("raw_q", self.raw_q, self.q), ("raw_k", self.raw_k, self.k)):
            if raw is projected:
                object.__setattr__(self, name, None)

    @property
    def raw(self) -> tuple[Tensor, Tensor]:
        """Return the raw queries and keys."""
        return (self.q if self.raw_q is None else self.raw_q), (self.k if self.raw_k is None else self.raw_k)

    def tensors(self) -> tuple[Tensor, ...]:
        """Return all tensors, each once."""
        return tuple(t for t in (self.q, self.k, self.v, self.raw_q, self.raw_k) if t is not None)


class Mode(NamedTuple):
    """Describe what the caller of the attention needs; see `paths.attend`."""

    training: bool = False
    dropout: float = 0.0
    need_weights: bool = False


class Choice(NamedTuple):
    """Hold the chosen path and the reason why a preferred path was not chosen, or an empty text."""

    path: str
    reason: str = ""

    def __str__(self) -> str:
        name = NAMES.get(self.path, self.path)
        return f"{name} ({self.reason})" if self.reason else name


class PathRefusedError(InputError):
    """Say why the path `fused` or `compiled`, which the caller requested, cannot be used."""


def choose(x: Projected, call: LayerView, mode: Mode, path: str = "auto", device: torch.device | None = None) -> Choice:
    """Return the path for one layer.

    Args:
        x: Queries, keys and values.
        call: The encoding's hooks at the positions of this forward pass.
        mode: What the caller needs.
        path: One of `PATHS`.
        device: Where attention is computed; None means the device of x.

    Raises:
        PathRefusedError: `path` is fused or compiled, and would give wrong results or cannot run here.
        ValueError: `path` is unknown.
    """
    if path not in PATHS:
        raise ValueError(f"path must be one of {', '.join(PATHS)}, but it is {path!r}")
    if path == "explicit" or (path == "compiled" and torch.compiler.is_compiling()):
        return Choice("explicit", "path=explicit is set" if path == "explicit" else "torch compiles the whole model")
    if path != "auto":
        reason = _cannot_fuse(x, call, mode) if path == "fused" else _cannot_compile(call, mode)
        if reason:
            raise PathRefusedError(f"path={path} is not possible here, because {reason}: use path=auto")
        return Choice(path)
    on_gpu = (device or x.q.device).type == "cuda"
    reason = _cannot_fuse(x, call, mode) or (_not_fused_on_gpu if on_gpu else _better_explicit)(x, call, mode)
    if not reason:
        return Choice("fused")
    if not on_gpu:
        return Choice("explicit", reason)
    not_compiled = _cannot_compile(call, mode) or _better_eager(call)
    if not not_compiled:
        return Choice("compiled", reason)
    return Choice("explicit", reason if reason == not_compiled else f"{reason}; not compiled: {not_compiled}")


def _cannot_fuse(x: Projected, call: LayerView, mode: Mode) -> str:
    """Return the reason why the fused kernel would give wrong results, or an empty text if the kernel is exact."""
    if mode.need_weights:
        return "the caller needs the attention weights"
    for hook, text in UNFUSED.items():
        if call.has(hook):
            return text
    if _biased(call) and x.q.dtype in HALF:
        return "the kernel would round the position terms to half precision"
    return ""


def _biased(call: LayerView) -> bool:
    return call.has("bias") or call.has("content_bias")


def _cannot_compile(call: LayerView, mode: Mode) -> str:
    """Return the reason why torch cannot compile this attention, or an empty text if it can, as far as is known."""
    if mode.need_weights:
        return "the caller needs the attention weights"
    if not eagerly():
        return "torch traces or transforms the model"
    if call.key in call.positions.compiled:  # activation checkpointing runs a layer again, on the same path
        return ""
    return call.encoding.uncompiled


def _better_eager(call: LayerView) -> str:
    return "a single query has few logits" if call.positions.query_length == 1 else ""


def _not_fused_on_gpu(x: Projected, call: LayerView, mode: Mode) -> str:
    """Return the reason why the fused kernel is not the best path on a GPU, or an empty text if it is.

    With a bias, the kernel reads a mask of all pairs from memory, and so takes more time and memory than the compiled
    formula, which computes the bias.
    """
    if _biased(call) and call.positions.query_length > 1:
        return "the encoding adds position terms to the logits"
    if mode.training and torch.are_deterministic_algorithms_enabled():
        return "the backward pass of the fused kernel is not deterministic"
    return ""


def _better_explicit(x: Projected, call: LayerView, mode: Mode) -> str:
    """Return the reason why the fused kernel would not be faster on a CPU, or an empty text if it would be.

    On a CPU, torch uses a fused kernel only without dropout and without gradients of the bias.
    """
    if mode.training:
        return "the fused path is not faster than the explicit path in training on a CPU"
    if torch.is_grad_enabled() and any(t.requires_grad for t in (x.q, x.k, x.v, *call.tensors())):
        return "the fused path is not faster than the explicit path on a CPU if gradients are needed"
    if mode.dropout:
        return "the fused path is not faster than the explicit path on a CPU with attention dropout"
    if call.positions.query_length == 1:
        return "the explicit path is faster for a single query on a CPU"
    return ""
