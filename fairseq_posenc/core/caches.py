"""Values kept between forwards: one entry, for the longest length so far; shorter ones are its slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from .base import PositionEncoding, StackShape


class OptimizerSteps:
    """How many steps all optimizers of the process have made: torch counts no write of a fused one (`fused=True`)."""

    def __init__(self) -> None:
        self.count = 0
        register_optimizer_step_post_hook(self._add)

    def _add(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.count += 1


STEPS = OptimizerSteps()


class EvaluationCache:
    """A value made from parameters, kept in evaluation only.

    It is dropped when a parameter was written, replaced, cast or moved, or an optimizer made a step, and made anew in
    training and where gradients are asked for. torch does not count writes through `parameter.data`: after one in
    evaluation, call `eval()` again.
    """

    def __init__(self) -> None:
        self._value: Tensor | None = None
        self._made_from: list[tuple[Tensor, int]] = []
        self._made_at = 0  # of STEPS
        self._length = 0

    def clear(self) -> None:
        """Forget the value."""
        self._value = None

    @staticmethod
    def keeps(parameters: Sequence[Tensor], *, training: bool) -> bool:
        """Whether `get` would keep a value made from these parameters now."""
        if torch.compiler.is_compiling():  # a graph makes it anew, and cannot ask the parameters
            return False
        wanted = torch.is_grad_enabled() and any(p.requires_grad for p in parameters)
        return not (training or wanted or any(p.is_inference() for p in parameters))

    def get(
        self,
        length: int,
        parameters: Sequence[Tensor],
        compute: Callable[[int], Tensor],
        *,
        training: bool,
        limit: int | None = None,
    ) -> tuple[Tensor, int]:
        """Return the value for a length N >= `length`, and N.

        Args:
            length: how long it must be at least. It grows geometrically, as decoding asks for one more each step.
            parameters: what it is made from; buffers too.
            compute: makes it for any N.
            training: whether the encoding is.
            limit: N is never beyond it.
        """
        if torch.compiler.is_compiling():  # what eager forwards keep stays theirs
            return compute(length), length
        if not self.keeps(parameters, training=training):
            self.clear()
            return compute(length), length
        current = self._value is not None and self._is_made_from(parameters)
        if not current or self._length < length:
            self._length = max(length, min(2 * length, limit or 2 * length)) if current else length
            with torch.inference_mode(False):  # training may come next
                self._value = compute(self._length).detach()
            self._made_from = [(p.detach(), p._version) for p in parameters]
            self._made_at = STEPS.count
        assert self._value is not None
        return self._value, self._length

    def _is_made_from(self, parameters: Sequence[Tensor]) -> bool:
        """Whether these are the numbers that the value was made from.

        The old memory is held, not only its address, which a parameter with new data might get again.
        """
        same = self._made_at == STEPS.count and len(parameters) == len(self._made_from)
        return same and all(
            (p.data_ptr(), p.dtype, p.device, p._version) == (old.data_ptr(), old.dtype, old.device, version)
            for p, (old, version) in zip(parameters, self._made_from, strict=True)
        )


class CachingEncoding(PositionEncoding):
    """An encoding that keeps what it makes of its parameters while it is evaluated."""

    def __init__(self, options: Any, stack: StackShape) -> None:
        super().__init__(options, stack)
        self._cache = EvaluationCache()

    def train(self, mode: bool = True) -> Self:
        self._cache.clear()
        return super().train(mode)


class GrownTables:
    """Tables of constants by position: computed in float64 once, longer when needed, cast when asked."""

    def __init__(self) -> None:
        self._tables: tuple[Tensor, ...] = ()

    def get(
        self,
        length: int,
        first: int,
        device: torch.device,
        dtype: torch.dtype,
        compute: Callable[[int], tuple[Tensor, ...]],
    ) -> tuple[Tensor, ...]:
        """Return tables of at least `length` rows in this dtype on this device.

        Args:
            first: how many rows to begin with. compute: float64 tables of any length.
        """
        have = self._tables
        rows = len(have[0]) if have else 0
        if rows < length or have[0].dtype != dtype or have[0].device != device:
            longest = rows if rows >= length else max(length, 2 * rows, first)
            with torch.inference_mode(False):  # training may save them for the backward
                self._tables = tuple(table.to(device, dtype) for table in compute(longest))
        return self._tables
