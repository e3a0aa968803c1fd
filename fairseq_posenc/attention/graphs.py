"""Compile the explicit formula of attention by torch.compile, and say why if that fails.

There is one compiled function in a process. Torch makes a graph of it for each kind of encoding, mask and mode, but not
for each layer, batch size or length.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from ..core.compose import LayerView
from ..ops.compiled import VERSIONS, compiled
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
        with _caching_own_gradients():
            run: Callable[..., Any] = _backend()(graph, inputs)
        return run


def _backend() -> Callable[..., Any]:
    """Return the function that compiles a graph. Older versions of torch have no choices to override (rows.py)."""
    if BACKEND == "inductor":
        with contextlib.suppress(ImportError):
            from .rows import compile_graph  # here, because the import takes seconds

            return compile_graph
    backend: Callable[..., Any] = torch._dynamo.lookup_backend(BACKEND)
    return backend


def _caching_own_gradients() -> contextlib.AbstractContextManager[object]:
    """Let torch store traced graphs that contain autograd functions, so that the next process starts faster.

    The key of the cache includes the code of both passes of such a function.
    """
    config, name = torch._functorch.config, "autograd_cache_allow_custom_autograd_functions"
    return config.patch({name: True}) if hasattr(config, name) else contextlib.nullcontext()


GRAPHS = _Graphs()


def attended(x: Projected, call: LayerView, dropout: float, *, training: bool = False) -> Tensor:
    """Return the attended values [B, h, Q, D] by the compiled formula; see `formula.attended`.

    In training, the gradient is compiled too, although activation checkpointing first runs without gradients.

    Raises:
        CompileFailedError: Torch could not compile the formula or its gradient.
    """
    bare = call.bound(call.positions.for_graphs, call.layers)
    _mark(x, bare)
    before, random = GRAPHS.count, _random_state(x.q.device) if dropout else None
    try:
        out: Tensor = compiled(_attended, backend=GRAPHS)(x, bare, str(dropout))
        if GRAPHS.count > before and (out.requires_grad or (training and not torch.is_grad_enabled())):
            _try_gradient(x, bare, str(dropout))
    except Exception as error:
        if not _is_of_compiler(error, made=GRAPHS.count > before):
            raise
        if random is not None:  # activation checkpointing recomputes the layer with the random numbers from before
            _set_random_state(x.q.device, random)
        raise CompileFailedError(_reason(error)) from error
    empty = call.positions.empty_rows
    return out if empty is None else out.masked_fill(empty, 0.0)


def _mark(x: Projected, call: LayerView) -> None:
    """Mark the axes of all tensors as fixed or not.

    Otherwise, sizes that are equal by chance in the first batch, such as its length and the head width, would be equal
    in the whole graph.
    """
    for tensor in x.tensors():
        torch._dynamo.mark_static(tensor, FIXED)
        torch._dynamo.maybe_mark_dynamic(tensor, OTHERS)
    others = (*call.tensors(), *call.positions.tensors())
    bases = (tensor._base for tensor in (*x.tensors(), *others) if tensor._base is not None)
    for tensor in (*others, *bases):
        torch._dynamo.maybe_mark_dynamic(tensor, list(range(tensor.dim())))


def _attended(x: Projected, call: LayerView, dropout: str) -> Tensor:
    """Return the attended values. The probability is a text, because a graph would take a number for a variable."""
    if not torch.compiler.is_compiling():
        raise CompileFailedError("torch.compile is switched off, for example by TORCHDYNAMO_DISABLE")
    return formula.attended(x, call, float(dropout))[0]


def _try_gradient(x: Projected, call: LayerView, dropout: str) -> None:
    """Run the backward pass of a new graph once, because torch compiles the gradient only when it is first needed.

    An error in the backward pass of the model could not be handled. Neither the random numbers of the model nor
    activation checkpointing notice this computation.
    """
    copies: dict[int, Tensor] = {}
    projected, has_gradients = {id(tensor) for tensor in x.tensors()}, torch.is_grad_enabled()

    def copy(tensor: Tensor) -> Tensor:
        """Return the same numbers as a result of their own, so that the backward pass ends there."""
        if id(tensor) not in copies:
            needs = tensor.requires_grad or (id(tensor) in projected and not has_gradients)
            own = tensor if has_gradients else tensor.detach().requires_grad_(needs)
            copies[id(tensor)] = own.view_as(own) if tensor._is_view() else own.clone()
        return copies[id(tensor)]

    devices = [x.q.device] if x.q.device.type == "cuda" else []
    with torch.enable_grad(), torch.random.fork_rng(devices), saved_tensors_hooks(_same, _same):
        raw_q, raw_k = (None if tensor is None else copy(tensor) for tensor in (x.raw_q, x.raw_k))
        own = Projected(copy(x.q), copy(x.k), copy(x.v), raw_q, raw_k, x.positioned)
        layers = {
            name: layer.with_tensors({key: copy(t) for key, t in layer.tensors.items()})
            for name, layer in call.layers.items()
        }
        again = compiled(_attended, backend=GRAPHS)(own, call.bound(call.positions, layers), dropout)
        inputs = [tensor for tensor in copies.values() if tensor.requires_grad]
        torch.autograd.grad(again, inputs, torch.zeros_like(again), allow_unused=True)


def _random_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_random_state(device: torch.device, state: Tensor) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _cause(error: Exception) -> Exception:
    """Return the error of a backend, which torch wraps."""
    while isinstance(inner := getattr(error, "inner_exception", None), Exception):
        error = inner
    return error


def _is_of_compiler(error: Exception, *, made: bool) -> bool:
    """Return whether an error may come from compiling, and not from a graph that has already worked.

    Args:
        error: The error of a call of the compiled function.
        made: Whether torch began to make a graph in this call.
    """
    cause = _cause(error)
    if isinstance(cause, torch.OutOfMemoryError) or type(cause).__name__ == "_StopRecomputationError":
        return False  # fairseq leaves out the batch, or activation checkpointing has recomputed enough
    return made or isinstance(error, CompileFailedError | torch._dynamo.exc.TorchDynamoException)


def _reason(error: Exception) -> str:
    """Return the first line of an error, with the name of its class."""
    cause = _cause(error)
    if isinstance(cause, CompileFailedError):
        return str(cause)
    if "RecompileLimit" in type(cause).__name__:
        return f"this process has {VERSIONS} different graphs of attention; use fewer kinds of models in a process"
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[0]}" if lines else type(cause).__name__
