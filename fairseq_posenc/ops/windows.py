"""Multiply each token by the vectors of the distances to all columns, without products that belong to no pair.

A token in row r needs the vectors of the distances from -r to C-1-r, a window of the vectors of all R + C - 1
distances. The tokens of all samples and heads in this row need the same window, so there is one matrix product for each
row. On a GPU, this is faster than a product with all distances, whose result has to be reordered. The windows are not
kept for the backward pass.

Legend: B batch, h heads, R rows (index r), C columns (index c), D head width, N = R+C-1 distances.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .compiled import own_gradients
from .precision import promoted


def usable(x: Tensor, vectors: Tensor) -> bool:
    """Return whether `product` is faster, and its windows [R, C, D] take no more memory than its result [B, h, R, C].

    Args:
        x: The tokens, [B, h, R, D].
        vectors: The vectors of all distances, [1 or h, N, D].
    """
    if not torch.compiler.is_compiling() or not own_gradients() or len(vectors) > 1:
        return False
    return x.shape[2] > 1 and x.shape[0] * x.shape[1] >= x.shape[3]


def product(x: Tensor, vectors: Tensor, columns: int) -> Tensor:
    """Return the products x[r]·vectors[c - r + R - 1], [B, h, R, C].

    Args:
        x: The tokens, [B, h, R, D].
        vectors: The vectors of the distances from -(R - 1) to C - 1 from a row to a column, [N, D].
        columns: Number of columns, C.
    """
    out: Tensor = _Product.apply(x, vectors, columns)
    return out


class _Product(torch.autograd.Function):
    """Compute `product` in compiled code."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, vectors: Tensor, columns: int) -> Tensor:
        ctx.save_for_backward(x, vectors)
        ctx.columns = columns
        products = torch.bmm(_by_row(x), _windows(vectors, x.shape[2], columns).transpose(1, 2))
        return _by_sample(products, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, vectors = ctx.saved_tensors
        grads = _by_row(grad)
        of_x = torch.bmm(grads, _windows(vectors, x.shape[2], ctx.columns))
        of_windows = torch.bmm(grads.transpose(1, 2), _by_row(x))
        return _by_sample(of_x, x), _summed(of_windows).to(vectors.dtype), None


def _by_row(x: Tensor) -> Tensor:
    """Reorder [B, h, R, *] to one matrix for each row, [R, B h, *]."""
    return x.permute(2, 0, 1, 3).flatten(1, 2)


def _by_sample(products: Tensor, like: Tensor) -> Tensor:
    """Reorder [R, B h, *] to [B, h, R, *]; `like` has the same B and h."""
    return products.unflatten(1, like.shape[:2]).permute(1, 2, 0, 3)


def _windows(vectors: Tensor, rows: int, columns: int) -> Tensor:
    """Return the vectors that each row needs: [N, D] -> [R, C, D]."""
    width = vectors.shape[-1]
    return vectors.contiguous().as_strided((rows, columns, width), (width, width, 1)).flip(0)


def _summed(of_windows: Tensor) -> Tensor:
    """Return the sum of the gradients [R, C, D] of each vector in all windows, in at least float32: [N, D]."""
    rows, columns, _ = of_windows.shape
    row = torch.arange(rows, device=of_windows.device)[:, None]
    column = torch.arange(rows + columns - 1, device=of_windows.device) - (rows - 1) + row  # [R, N]
    inside = (column >= 0) & (column < columns)
    read = promoted(of_windows[row, column.clamp(0, columns - 1)])
    return torch.where(inside[..., None], read, 0.0).sum(0)
