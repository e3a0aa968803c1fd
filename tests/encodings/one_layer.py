"""Build one layer of an encoding in float64, and compute its logits as the attention does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fairseq_posenc.attention import Projected
from fairseq_posenc.attention.formula import logits
from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")


def build_encoding(
    spec: str,
    args: str = "",
    *,
    layers: int = 1,
    heads: int = 1,
    head_dim: int = 2,
    n: int = 8,
    causal: bool = False,
    has_cls: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Composition:
    """Build an encoding in evaluation, without gradients, with its parameters as they start."""
    torch.manual_seed(0)
    shape = StackShape(layers, heads, heads * head_dim, n, causal=causal, has_cls=has_cls)
    return build(spec, args, shape).to(dtype).eval().requires_grad_(False)


def drawn_wide(pos: Composition) -> Composition:
    """Draw all parameters from a standard normal distribution, and let them learn."""
    generator = torch.Generator().manual_seed(3)
    for parameter in pos.parameters():
        parameter.normal_(generator=generator)
    return pos.requires_grad_()


def logits_of(
    pos: Composition, q: Tensor, k: Tensor, positions: Positions, layer: int = 1, inputs: Tensor | None = None
) -> Tensor:
    """Return the logits [B, h, Q, K] of raw q and k before the mask; some encodings read the layer's inputs."""
    call = pos.layer(layer).at(positions, pos.per_layer(positions)[layer - 1])
    call = call if inputs is None else call.with_inputs(inputs)
    return logits(Projected(call.project_q(q), call.project_k(k), k, q, k), call)


def bias_of(pos: Composition, positions: Positions, layer: int = 1) -> Tensor:
    """Return what a content-free encoding adds, [1 or B, 1 or h, Q, K]."""
    bias = pos.layer(layer).at(positions, pos.per_layer(positions)[layer - 1]).additive(torch.empty(0), torch.empty(0))
    assert bias is not None
    return bias


def drawn(queries: int, keys: int, *, batch: int = 2, heads: int = 2, head_dim: int = 4) -> tuple[Tensor, Tensor]:
    """Return random q and k, with gradients."""
    generator = torch.Generator().manual_seed(4)
    shapes = ((batch, heads, length, head_dim) for length in (queries, keys))
    q, k = (torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes)
    return q, k


class _Largest(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, Tensor):  # a view may show more numbers than its storage holds
                self.size = max(self.size, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


@contextmanager
def largest_tensor() -> Iterator[_Largest]:
    """Record, as `.size`, how many numbers the largest tensor holds that is made here, also in a backward pass."""
    with _Largest() as seen:
        yield seen
