"""The product of content queries and keys, to which position terms are added."""

from __future__ import annotations

import torch
from torch import Tensor

from .precision import promoted


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
        """Itself to the first who asks, None to others."""
        if self.taken:
            return None
        self.taken = True
        return self

    def product(self) -> Tensor:
        """[B, h, Q, K], in at least float32."""
        return promoted(torch.matmul(self.q * self.scale, self.k.transpose(-1, -2)))
