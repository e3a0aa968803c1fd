"""One layer of an encoding in float64, its logits as the attention makes them, and what its parameters number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fairseq_posenc.attention.paths import Projected, logits
from fairseq_posenc.encodings import Composition, StackShape, build
from fairseq_posenc.positions import Positions

CPU = torch.device("cpu")
BASE = StackShape(layers=12, heads=12, dim=768, max_length=512, has_cls=True)


def one_layer(
    spec: str, args: str = "", *, heads: int = 2, head_dim: int = 4, n: int = 16, causal: bool = False
) -> Composition:
    """With parameters drawn wide; encoders have a [CLS]."""
    stack = StackShape(1, heads, heads * head_dim, n, causal=causal, has_cls=not causal)
    pos = build(spec, args, stack).double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in pos.parameters():
            parameter.normal_(generator=generator)
    return pos


def logits_of(pos: Composition, q: Tensor, k: Tensor, positions: Positions) -> Tensor:
    """[B, h, Q, K] of raw q and k."""
    call = pos.layer(1).at(positions, pos.per_layer(positions)[0])
    return logits(Projected(call.project_q(q), call.project_k(k), k, q, k), call)


def drawn(queries: int, keys: int, *, batch: int = 2, heads: int = 2, head_dim: int = 4) -> tuple[Tensor, Tensor]:
    """Raw q and k, with gradients."""
    generator = torch.Generator().manual_seed(4)
    shapes = ((batch, heads, length, head_dim) for length in (queries, keys))
    q, k = (torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes)
    return q, k


def plain(q: Tensor, k: Tensor) -> Tensor:
    """q.k / sqrt(D)."""
    return q @ k.mT / q.shape[-1] ** 0.5


def by_hand(spec: str, args: str, a: float | list[float]) -> float:
    """The logit of q = (1, 2), k = (3, -1) where every row of the table is a: METHODS.md 8."""
    pos = one_layer(spec, args, heads=1, head_dim=2, n=8).requires_grad_(False)
    weight = pos.members[spec].weight
    weight.copy_(torch.tensor(a).expand_as(weight))
    q, k = (torch.tensor(row, dtype=torch.float64).expand(1, 1, 3, 2) for row in ([1, 2], [3, -1]))
    found = logits_of(pos, q, k, Positions(3, 3, CPU))
    torch.testing.assert_close(found, found[:, :, :1, :1].expand_as(found), rtol=0, atol=1e-12)
    return float(found[0, 0, 0, 0])


def number_of_parameters(spec: str, args: str = "") -> int:
    """Of BERT-base with n = 512."""
    with torch.device("meta"):
        encoding = build(spec, args, BASE)
    return sum(parameter.numel() for parameter in encoding.parameters())


class _Largest(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, Tensor):  # what a view shows may be more than what there is
                self.size = max(self.size, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


@contextmanager
def largest_tensor() -> Iterator[_Largest]:
    """The numbers in the largest tensor that is made, also in a backward: `.size`."""
    with _Largest() as seen:
        yield seen
