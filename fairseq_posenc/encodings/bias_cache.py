"""A content-free bias kept between forwards, in evaluation only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..positions import Positions


class BiasCache:
    """One [1, h, N, N] bias, for the longest length so far; shorter ones are its slices.

    It is dropped when a parameter was written, replaced, cast or moved, and where gradients are asked for.
    torch does not count writes through `parameter.data`: after one in evaluation, call `eval()` again.
    """

    def __init__(self) -> None:
        self._bias: Tensor | None = None
        self._key: tuple[object, ...] = ()

    def clear(self) -> None:
        """Forget."""
        self._bias = None

    def get(self, positions: Positions, parameters: Sequence[Tensor], compute: Callable[[Positions], Tensor]) -> Tensor:
        """The bias [1, h, Q, K] at these positions; `compute` makes it for positions of any length."""
        if torch.is_grad_enabled() and any(p.requires_grad for p in parameters):
            self.clear()
            return compute(positions)
        key = (positions.device, *((p.data_ptr(), p._version, p.dtype) for p in parameters))
        length = positions.key_length
        if self._bias is None or key != self._key or self._bias.shape[-1] < length:
            growing = positions.offset > 0  # decoding: the next step needs one more
            with torch.inference_mode(False):  # training may use it later
                self._bias = compute(_square(2 * length if growing else length, positions.device)).detach()
            self._key = key
        return self._bias[:, :, positions.offset : length, :length]


def _square(length: int, device: torch.device) -> Positions:
    return Positions(length, length, device)
