"""RoPE: queries and keys rotated by their positions (Su et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..positions import Positions
from .base import Facts, Layer, PositionEncoding, StackShape
from .caches import GrownTables
from .options import Options, option


@dataclass(frozen=True)
class RopeOptions(Options):
    """Options of RoPE."""

    layout: str = option(
        "interleaved",
        "which features make a pair: 2m and 2m+1 (interleaved: RoFormer), or m and m + D/2 (half: GPT-NeoX, HF)",
        choices=("interleaved", "half"),
    )
    base: float = option(10000.0, "pair m turns by position * base^(-2m/D)", example=100.0)


class Rope(PositionEncoding):
    """e_ij = (R_i q_i) . (R_j k_j) / sqrt(D), R_p a rotation of each feature pair m by p base^(-2m/D).

    METHODS.md 9. The two layouts are not interchangeable without permuting the projections.
    """

    Options = RopeOptions
    facts = Facts(
        title="RoPE: rotary",
        paper="Su et al. 2021",
        equation="(16), (34)",
        formula=r"e_{ij} = \frac{(R_i q_i) \cdot (R_j k_j)}{\sqrt{D}}",
    )
    options: RopeOptions

    def __init__(self, options: RopeOptions, stack: StackShape) -> None:
        super().__init__(options, stack)
        if stack.head_dim % 2:
            raise ValueError(f"rotates pairs: the head width must be even, got {stack.head_dim}")
        if options.base <= 1:
            raise ValueError(f"base={options.base} must be greater than 1")
        self._tables = GrownTables()

    def project_q(self, q: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return self._rotated(q, positions.key_length)

    def project_k(self, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return self._rotated(k, positions.key_length)

    def _rotated(self, x: Tensor, key_length: int) -> Tensor:
        """Turn x [B, h, T, D], which stands at the last T columns."""
        exact = torch.promote_types(x.dtype, torch.float32)
        turns = self._tables.get(key_length, self.stack.max_length, x.device, exact, self._turns)
        cos, sin = (turn[key_length - x.shape[2] : key_length] for turn in turns)
        pairs = x.to(exact).unflatten(-1, (-1, 2) if self._interleaved else (2, -1))
        first, second = pairs.unbind(-1 if self._interleaved else -2)
        turned = (first * cos - second * sin, first * sin + second * cos)
        return torch.stack(turned, -1 if self._interleaved else -2).flatten(-2).to(x.dtype)

    @property
    def _interleaved(self) -> bool:
        return self.options.layout == "interleaved"

    def _turns(self, length: int) -> tuple[Tensor, Tensor]:
        """cos and sin, [length, D/2] float64."""
        exponents = torch.arange(0, self.stack.head_dim, 2, dtype=torch.float64) / self.stack.head_dim
        angles = torch.arange(length, dtype=torch.float64)[:, None] * self.options.base**-exponents
        return angles.cos(), angles.sin()

    def reference(self, q: Tensor, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        """With pairs as complex numbers: Re sum_m q_m conj(k_m) exp(i (i - j) speed_m), RoFormer (12)."""
        exponents = torch.arange(q.shape[-1] // 2, dtype=torch.float64) * -2 / q.shape[-1]
        turns = torch.exp(-1j * positions.delta[..., None] * self.options.base**exponents)  # [Q, K, D/2]
        product = torch.einsum("bhim,bhjm,ijm->bhij", self._complex(q), self._complex(k).conj(), turns)
        return product.real / self.stack.head_dim**0.5

    def _complex(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        if self._interleaved:
            return torch.complex(x[..., 0::2], x[..., 1::2])
        return torch.complex(x[..., :half], x[..., half:])
