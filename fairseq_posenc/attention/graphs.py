"""Compile the explicit formula of attention by torch.compile, and say why if that fails.

There is one compiled function in a process. Torch makes a graph of it for each kind of encoding, mask and mode, but not
for each layer, batch size or length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from ..core.compose import LayerCall
from ..ops.compiled import compiled
from . import formula
from .choice import Projected

#: Name of the backend of torch.compile. Tests use others, which take less time.
BACKEND = "inductor"
#: Axes of queries, keys and values whose sizes are the same in all batches, heads and head width, and the others.
FIXED, OTHERS = [1, 3], [0, 2]


class CompileFailedError(RuntimeError):
    """Say why torch could not compile the attention."""


class _Graphs:
    """Count the graphs that torch compiled in this process."""

    count = 0

    def __call__(self, graph: Any, inputs: list[Tensor]) -> Callable[..., Any]:
        """Compile a graph; torch.compile calls this method as its backend."""
        self.count += 1
        backend: Callable[..., Any] = torch._dynamo.lookup_backend(BACKEND)
        run: Callable[..., Any] = backend(graph, inputs)
        return run


GRAPHS = _Graphs()


def attended(x: Projected, call: LayerCall, dropout: float) -> Tensor:
    """Return the attended values [B, h, Q, D] by the compiled formula; see `formula.attended`.

    Raises:
        CompileFailedError: Torch could not compile the formula or its gradient.
    """
    bare = LayerCall(call.view, call.positions.for_graphs, call.layers)
    _mark(x, bare)
    before = GRAPHS.count
    try:
        out: Tensor = compiled(_attended, backend=GRAPHS)(x, bare, str(dropout))
        if GRAPHS.count > before:
            _try_gradient(out, x, bare, str(dropout))
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise CompileFailedError(_reason(error)) from error
    if not GRAPHS.count:
        raise CompileFailedError("torch.compile is switched off, for example by TORCHDYNAMO_DISABLE")
    empty = call.positions.empty_rows
    return out if empty is None else out.masked_fill(empty, 0.0)


def _mark(x: Projected, call: LayerCall) -> None:
    """Mark the axes of all tensors as fixed or not.

    Otherwise, sizes that are equal by chance in the first batch, such as its length and the head width, would be equal
    in the whole graph.
    """
    for tensor in x.tensors():
        torch._dynamo.mark_static(tensor, FIXED)
        torch._dynamo.maybe_mark_dynamic(tensor, OTHERS)
    for tensor in (*call.tensors(), *call.positions.tensors()):
        torch._dynamo.maybe_mark_dynamic(tensor, list(range(tensor.dim())))
        if tensor._base is not None:
            torch._dynamo.maybe_mark_dynamic(tensor._base, list(range(tensor._base.dim())))


def _attended(x: Projected, call: LayerCall, dropout: str) -> Tensor:
    """Return the attended values. The probability is a text, because a graph would take a number for a variable."""
    return formula.attended(x, call, float(dropout))[0]


def _try_gradient(out: Tensor, x: Projected, call: LayerCall, dropout: str) -> None:
    """Compute the gradient once for a new graph, because torch compiles it only then.

    An error in the backward pass of the model could not be handled. Neither the random numbers of the model nor
    activation checkpointing notice this computation.
    """
    if not out.requires_grad:
        return
    copies: dict[int, Tensor] = {}

    def copy(tensor: Tensor) -> Tensor:
        """Return the same numbers as a result of their own, so that the backward pass ends there."""
        if id(tensor) not in copies:
            copies[id(tensor)] = tensor.view_as(tensor) if tensor._is_view() else tensor.clone()
        return copies[id(tensor)]

    raw_q, raw_k = (None if tensor is None else copy(tensor) for tensor in (x.raw_q, x.raw_k))
    own = Projected(copy(x.q), copy(x.k), copy(x.v), raw_q, raw_k, x.positioned)
    layers = {
        name: replace(layer, tensors={key: copy(t) for key, t in layer.tensors.items()})
        for name, layer in call.layers.items()
    }
    devices = [out.device] if out.device.type == "cuda" else []
    with torch.random.fork_rng(devices), saved_tensors_hooks(_same, _same):
        again = compiled(_attended, backend=GRAPHS)(own, LayerCall(call.view, call.positions, layers), dropout)
    inputs = [tensor for tensor in copies.values() if tensor.requires_grad]
    torch.autograd.grad(again, inputs, torch.zeros_like(again), allow_unused=True)


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _reason(error: Exception) -> str:
    """Return the first line of an error, with the name of its class. Torch wraps errors of its backends."""
    while isinstance(inner := getattr(error, "inner_exception", None), Exception):
        error = inner
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
