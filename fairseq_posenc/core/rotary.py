"""Define the base class of encodings that rotate features of queries and keys by angles that depend on positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..positions import Positions
from .base import Layer, PositionEncoding, StackShape
from .caches import GrownTables
from .options import Options, option
from .refusal import InputError


@dataclass(frozen=True)
class RotaryOptions(Options):
    """Define the options of all rotary encodings."""

    layout: str = option(
        "interleaved",
        "Features that form pair m: 2m and 2m+1 as in RoFormer (interleaved), or m and m + R/2 as in GPT-NeoX and "
        "Hugging Face (half), where R is the number of features of a head that form pairs.",
        choices=("interleaved", "half"),
    )
    base: float = option(
        10000.0,
        "Base of the angles: pair m is rotated by position * base^(-2m/R) radians, where R is the number of features "
        "of a head that form pairs.",
        between=(1.001, 1e12),
        example=100.0,
    )


class Rotary(PositionEncoding):
    """Multiply pair m of a vector at position p, as a complex number, by entry [p, m] of `turns`.

    Legend: R is the number of rotated features, the first R <= D of a head; they form R/2 pairs.
    """

    def __init__(self, options: Any, stack: StackShape, features: int) -> None:
        super().__init__(options, stack)
        if features % 2 or not features:
            raise InputError(f"the head width is {stack.head_dim}, but it must be even to rotate pairs of features")
        self.features = features
        self._tables = GrownTables()

    def speeds(self) -> Tensor:
        """Return the angle by which each pair turns from one position to the next, [R/2] float64."""
        exponents = torch.arange(0, self.features, 2, dtype=torch.float64) / self.features
        return self.options.base**-exponents

    def turns(self, length: int) -> tuple[Tensor, ...]:
        """Return the real and imaginary parts of the rotation factors, [length, R/2] float64 each.

        A subclass may return four tensors: two for queries, then two for keys.
        """
        angles = torch.arange(length, dtype=torch.float64)[:, None] * self.speeds()
        return angles.cos(), angles.sin()

    def project_q(self, q: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return self._turned(q, *self._turns_at(q, positions)[:2])

    def project_k(self, k: Tensor, positions: Positions, layer: Layer) -> Tensor:
        return self._turned(k, *self._turns_at(k, positions)[-2:])

    def _turns_at(self, x: Tensor, positions: Positions) -> list[Tensor]:
        """Return the tensors of `turns` at the last T columns, to which x [B, h, T, D] belongs: [T, R/2] each.

        If the positions differ from the columns, the tensors are [1 or B, 1, T, R/2]. If only distances count, the
        columns serve as positions.
        """
        exact, end = torch.promote_types(x.dtype, torch.float32), positions.key_length
        tables = self._tables.get(positions.extent, self.stack.max_length, x.device, exact, self.turns)
        first = end - x.shape[2]
        if positions.ids is None and (self.capabilities.shift_invariant or positions.in_columns):
            return [turn[first:end] for turn in tables]
        ids = positions.sample_ids[:, None, first:]
        return [nn.functional.embedding(ids, turn) for turn in tables]

    def _turned(self, x: Tensor, real: Tensor, imaginary: Tensor) -> Tensor:
        """Rotate the first R features of x [B, h, T, D] and leave the others unchanged."""
        pairs = x[..., : self.features].to(real.dtype).unflatten(-1, (-1, 2) if self._interleaved else (2, -1))
        first, second = pairs.unbind(-1 if self._interleaved else -2)
        turned = (first * real - second * imaginary, first * imaginary + second * real)
        rotated = torch.stack(turned, -1 if self._interleaved else -2).flatten(-2).to(x.dtype)
        return rotated if self.features == x.shape[-1] else torch.cat([rotated, x[..., self.features :]], -1)

    @property
    def _interleaved(self) -> bool:
        return bool(self.options.layout == "interleaved")

    def literal_product(self, q: Tensor, k: Tensor, turns: Tensor) -> Tensor:
        """Return Re sum_m q_m conj(k_m) turns_m (RoFormer's equation 12) plus the dot product of the other features.

        The pairs q_m and k_m are complex numbers. Only the slow reference formulas use this method.

        Args:
            q, k: [B, h, Q, D] and [B, h, K, D].
            turns: Rotation factors for each distance i - j, [Q, K, R/2] complex.
        """
        q_pairs, k_pairs = self._complex(q[..., : self.features]), self._complex(k[..., : self.features])
        turned = torch.einsum("bhim,bhjm,ijm->bhij", q_pairs, k_pairs.conj(), turns).real
        return turned + torch.einsum("bhid,bhjd->bhij", q[..., self.features :], k[..., self.features :])

    def _complex(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        if self._interleaved:
            return torch.complex(x[..., 0::2], x[..., 1::2])
        return torch.complex(x[..., :half], x[..., half:])
