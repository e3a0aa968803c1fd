"""Reorder numbers from relative distances to pairs of queries and keys, and back.

Distance j - i of a query i and a key j is entry j - i + Q - 1 of the L = Q+K-1 distances, in the order of
`Positions.distances`.

Compiled code has its own gradients here (`own_gradients`). Torch's gradients of the same functions fill gaps by `pad`,
and compiled code would then divide by the length several times for each number, because lengths are variables. On a
GPU, these divisions take longer than everything else in the attention.

Legend: B batch, h heads, Q queries (index i), K keys (index j), L = Q+K-1 distances.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from .compiled import exporting, own_gradients

#: A GPU multiplies matrices of half precision fast if the lengths of their rows are multiples of this number.
ALIGNED = 8


class Lengths(Protocol):
    """Declare the part of `Positions` that this file needs."""

    @property
    def query_length(self) -> int:
        """Return the number of queries, Q."""

    @property
    def key_length(self) -> int:
        """Return the number of keys, K."""

    @property
    def pairs(self) -> Tensor | None:
        """Return the index of each pair's distance, [1 or B, Q, K]; None if row and column determine the distance."""


def shift(x: Tensor, key_length: int, *, heads_first: bool = False) -> Tensor:
    """Reorder a tensor [B, h, Q, L] by distance to a tensor [B, h, Q, K] by key: out[r, j] = x[r, j - r + Q - 1].

    The function drops the first Q-1 numbers of the flattened matrix and reads the others in rows of L-1 numbers. Each
    of the new rows begins one distance earlier in `x` than the row above it. The function generalises the skewing of
    Music Transformer (Huang et al., 2018) to distances in both directions. If there are more than L
    numbers in a row (`padded`), the others are not read.

    Args:
        x: Numbers by distance; the last two axes are contiguous. In eager code, there may be any axes before them.
        key_length: Number of keys, K.
        heads_first: Whether x is stored as [h, B, Q, L], so that its gradient is best stored like this, too.
    """
    if x.shape[-2] > 1 and _compiles():
        out: Tensor = _Shift.apply(x, key_length, heads_first)
        return out
    return _shifted(x, key_length)


def shift_transposed(x: Tensor, query_length: int, *, heads_first: bool = False) -> Tensor:
    """Reorder a tensor of keys [B, h, K, L] to a tensor [B, h, Q, K] of pairs: out[i, j] = x[j, i - j + K - 1].

    Args:
        x: Numbers of each key by the distance i - j from the key to a query, which begins with -(K-1).
        query_length: Number of queries, Q.
        heads_first: See `shift`.
    """
    if x.shape[-2] > 1 and _compiles():
        out: Tensor = _TransposedShift.apply(x, query_length, heads_first)
        return out
    return _shifted(x, query_length).transpose(-1, -2)


def transposed(x: Tensor) -> Tensor:
    """Return x [B, h, K, Q] as [B, h, Q, K]; in compiled code, its numbers are stored in this order."""
    if _compiles():
        out: Tensor = _Transposed.apply(x)
        return out
    return x.transpose(-1, -2)


def unshift(x: Tensor, length: int) -> Tensor:
    """Reorder a tensor [..., Q, K] by key to a tensor [..., Q, length] by distance, and fill the gaps with zeros.

    This function is the adjoint of the linear function `shift`.

    Args:
        x: Numbers by pair.
        length: Number of distances, L; with `padded`, it may be larger.
    """
    queries, keys = x.shape[-2:]
    if queries == 1:
        return F.pad(x, (0, length - keys))
    if x.dim() == 4 and _compiles():
        out: Tensor = _Unshift.apply(x, length)
        return out
    rows = F.pad(x, (0, length - 1 - keys)).flatten(-2)
    return F.pad(rows, (queries - 1, 1)).unflatten(-1, (queries, length))


def to_pairs(vector: Tensor, positions: Lengths) -> Tensor:
    """Copy one number per distance, [..., L], to all pairs, [1 or B, ..., Q, K]: out[r, j] = vector[j - r + Q - 1].

    The slices that `unfold` returns are the rows in reverse order. Slicing takes a third of the time of indexing.
    Compiled code does not use `unfold`, because it would be compiled again for every length.
    """
    if positions.pairs is not None:
        pairs = vector.index_select(-1, positions.pairs.flatten()).unflatten(-1, positions.pairs.shape)
        return pairs.movedim(-3, 0)
    if vector.dim() == 2 and positions.query_length > 1 and _compiles() and vector.is_floating_point():
        out: Tensor = _ToPairs.apply(vector, positions.query_length, positions.key_length)
        return out[None]
    if torch.compiler.is_compiling():
        rows = padded(vector, -1)[..., None, :].expand(*vector.shape[:-1], positions.query_length, -1)
        return _shifted(rows, positions.key_length)[None]
    return vector.unfold(-1, positions.key_length, 1).flip(-2)[None]


def padded(vectors: Tensor, dim: int) -> Tensor:
    """Append zeros along `dim` (-1 or -2) in compiled code, so that there are at least Q+K-1 vectors.

    With torch.compile, their number becomes a multiple of 8, because a GPU multiplies other matrices slowly. With
    torch.export, there is one more, because `shift` would leave no numbers out between its rows if K = 2, and the graph
    would refuse this length.
    """
    if not torch.compiler.is_compiling():
        return vectors
    more = 1 if exporting() else -vectors.shape[dim] % ALIGNED
    return F.pad(vectors, (0, 0) * (-1 - dim) + (0, more))


def _compiles() -> bool:
    """Return whether torch.compile traces this code, and not torch.export, which needs torch's own gradients."""
    return torch.compiler.is_compiling() and own_gradients()


def _shifted(x: Tensor, columns: int) -> Tensor:
    rows, length = x.shape[-2:]
    if rows == 1:
        return x.narrow(-1, 0, columns)
    flat = x.flatten(-2).narrow(-1, rows - 1, rows * (length - 1))
    return flat.unflatten(-1, (rows, length - 1)).narrow(-1, 0, columns)


def _unshifted(x: Tensor, length: int, heads_first: bool = False) -> Tensor:
    """Write numbers by pair into a tensor of zeros, in the order of distances: [B, h, Q, K] -> [B, h, Q, length].

    With `heads_first`, the result is stored as [h, B, Q, length].
    """
    batch, heads, rows, _ = x.shape
    matrix = rows * length
    strides = (matrix, batch * matrix) if heads_first else (heads * matrix, matrix)
    out = x.new_zeros(batch * heads * matrix)
    out.as_strided(x.shape, (*strides, length - 1, 1), rows - 1).copy_(x)
    return out.as_strided((batch, heads, rows, length), (*strides, length, 1))


class _Shift(torch.autograd.Function):
    """Compute `shift` in compiled code."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, key_length: int, heads_first: bool) -> Tensor:
        ctx.length, ctx.heads_first = x.shape[-1], heads_first
        return _shifted(x, key_length)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _unshifted(grad, ctx.length, ctx.heads_first), None, None


class _TransposedShift(torch.autograd.Function):
    """Compute `shift_transposed` in compiled code."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, query_length: int, heads_first: bool) -> Tensor:
        ctx.length, ctx.heads_first = x.shape[-1], heads_first
        return _stored_transposed(_shifted(x, query_length))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _unshifted(grad.transpose(-1, -2), ctx.length, ctx.heads_first), None, None


class _Transposed(torch.autograd.Function):
    """Compute `transposed` in compiled code."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _stored_transposed(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _stored_transposed(grad)


def _stored_transposed(x: Tensor) -> Tensor:
    """Return [B, h, K, Q] of [B, h, Q, K] as a contiguous tensor, written in a pass of its own.

    This pass reads and writes in blocks. Otherwise, the softmax would read the numbers in the wrong order.
    """
    batch, heads, rows, columns = x.shape
    matrix = rows * columns
    out = x.new_empty(batch * heads * matrix)
    out.as_strided(x.shape, (heads * matrix, matrix, 1, rows)).copy_(x)
    return out.view(batch, heads, columns, rows)


class _Unshift(torch.autograd.Function):
    """Compute `unshift` in compiled code."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, length: int) -> Tensor:
        ctx.keys = x.shape[-1]
        return _unshifted(x, length)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _shifted(grad.contiguous(), ctx.keys), None


class _ToPairs(torch.autograd.Function):
    """Compute `to_pairs` in compiled code: [h, L] -> [h, Q, K]."""

    @staticmethod
    def forward(ctx: Any, vector: Tensor, queries: int, keys: int) -> Tensor:
        vector = vector.contiguous()
        heads, length = vector.shape
        ctx.length = length
        return vector.as_strided((heads, queries, keys), (length, 1, 1)).flip(1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _unshifted(grad[None], ctx.length)[0].sum(1), None, None
