"""Compute the content product q·k of queries and keys, and the weighted sum of the values.

The content product is the part of the attention logits to which position encodings add their own terms.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .precision import HALF, promoted

#: If a row is multiplied by a matrix of fewer numbers than this, torch uses a slow plain loop.
FEW = 400


class Content:
    """Hold the factors of the content product scale * q' k'^T, [B, h, Q, K], which is not computed yet.

    An encoding can compute the content product together with its own terms, in one pass over the query-key pairs. The
    encoding then calls `take`, and its `content_bias` returns a sum that includes the content product. If no encoding
    calls `take`, the attention adds the content product.

    Args:
        q, k: Queries q' [B, h, Q, D] and keys k' [B, h, K, D], after the hooks `project_q` and `project_k`.
        scale: Number by which the product is multiplied.
    """

    def __init__(self, q: Tensor, k: Tensor, scale: float) -> None:
        self.q, self.k, self.scale = q, k, scale
        self.taken = False

    def take(self) -> bool:
        """Return True at the first call and False afterwards, so that the product is added only once."""
        first, self.taken = not self.taken, True
        return first

    def product(self) -> Tensor:
        """Return the content product, [B, h, Q, K], in at least float32."""
        return promoted(dot_products(self.q * self.scale, self.k))


def dot_products(q: Tensor, k: Tensor) -> Tensor:
    """Return q k^T: [B, h, Q, D], [B, h, K, D] -> [B, h, Q, K]."""
    if _few(q, k):
        return (k * q).sum(-1).unsqueeze(2)
    return torch.matmul(q, k.transpose(-1, -2))


def of_values(weights: Tensor, v: Tensor) -> Tensor:
    """Return the weighted sums of the values: [B, h, Q, K], [B, h, K, D] -> [B, h, Q, D]."""
    if _few(weights, v):
        return (weights.transpose(-1, -2) * v).sum(2, keepdim=True)
    return torch.matmul(weights, v)


def _few(rows: Tensor, columns: Tensor) -> bool:
    """Return whether element-wise multiplication and a sum are faster than `torch.matmul`.

    For a single row and a small matrix on a CPU, `torch.matmul` uses a slow plain loop, except in half precision.
    """
    single = rows.shape[2] == 1 and rows.device.type == "cpu"
    return single and columns.shape[-1] * columns.shape[-2] < FEW and rows.dtype not in HALF
