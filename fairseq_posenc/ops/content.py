"""The product of content queries and keys, to which position terms are added."""

from __future__ import annotations

import torch
from torch import Tensor

from .precision import HALF, promoted

#: numbers of a sample and head's keys: torch multiplies smaller matrices by a plain loop
FEW = 400


class Content:
    """scale * q' k'^T, [B, h, Q, K], not made yet.

    An encoding may make it together with its own terms, in one pass over the pairs: it `take`s it, and what its
    `content_bias` returns then includes it. What nobody takes the attention makes and adds itself.

    Args:
        q, k: q' [B, h, Q, D] and k' [B, h, K, D], after `project_*`. scale: the factor on their product.
    """

    def __init__(self, q: Tensor, k: Tensor, scale: float) -> None:
        self.q, self.k, self.scale = q, k, scale
        self.taken = False

    def take(self) -> Content | None:
        """Return itself to the first who asks, None to others."""
        if self.taken:
            return None
        self.taken = True
        return self

    def product(self) -> Tensor:
        """Return the product, [B, h, Q, K], in at least float32."""
        return promoted(of_keys(self.q * self.scale, self.k))


def of_keys(q: Tensor, k: Tensor) -> Tensor:
    """Return q k^T: [B, h, Q, D], [B, h, K, D] -> [B, h, Q, K]."""
    if _few(q, k):
        return (k * q).sum(-1).unsqueeze(2)
    return torch.matmul(q, k.transpose(-1, -2))


def of_values(weights: Tensor, v: Tensor) -> Tensor:
    """Return the weighted sums: [B, h, Q, K], [B, h, K, D] -> [B, h, Q, D]."""
    if _few(weights, v):
        return (weights.transpose(-1, -2) * v).sum(2, keepdim=True)
    return torch.matmul(weights, v)


def _few(rows: Tensor, columns: Tensor) -> bool:
    """Say whether torch multiplies one row and so few columns by a plain loop, slower than it multiplies and adds."""
    single = rows.shape[2] == 1 and rows.device.type == "cpu"
    return single and columns.shape[-1] * columns.shape[-2] < FEW and rows.dtype not in HALF
