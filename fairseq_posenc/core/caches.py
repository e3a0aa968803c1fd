"""Cache computed tensors for the longest sequence up to now; shorter sequences use slices of these tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from ..ops.compiled import exporting
from .base import PositionEncoding, StackShape


class OptimizerSteps:
    """Count the steps of all optimizers in the process.

    Torch's version counter of a parameter does not show every change: a fused optimizer (`fused=True`) does not
    increase it.
    """

    def __init__(self) -> None:
        self.count = 0
        register_optimizer_step_post_hook(self._add)

    def _add(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.count += 1


STEPS = OptimizerSteps()


class EvaluationCache:
    """Cache a tensor that is computed from parameters, but only in evaluation mode.

    The tensor is computed again after a parameter was written, replaced, cast or moved, and after any optimizer step.
    In training, and whenever gradients are needed, the tensor is computed at every call. Torch does not notice writes
    through `parameter.data`: after such a write in evaluation mode, call `eval()` again.
    """

    def __init__(self) -> None:
        self._value: Tensor | None = None
        self._computed_from: list[tuple[Tensor, int]] = []
        self._computed_at = 0  # STEPS.count when the value was computed
        self._length = 0

    def clear(self) -> None:
        """Delete the cached tensor."""
        self._value = None

    @staticmethod
    def keeps(parameters: Sequence[Tensor], *, training: bool) -> bool:
        """Return whether `get` would keep a tensor that is computed now from the given parameters."""
        if torch.compiler.is_compiling():  # a graph cannot check the parameters, so it computes the value every time
            return False
        differentiable = torch.is_grad_enabled() and any(p.requires_grad for p in parameters)
        return not (training or differentiable or any(p.is_inference() for p in parameters))

    def get(
        self,
        length: int,
        parameters: Sequence[Tensor],
        compute: Callable[[int], Tensor],
        *,
        training: bool,
        limit: int | None = None,
    ) -> tuple[Tensor, int]:
        """Return the tensor for a length N of at least `length`, and N itself.

        Args:
            length: Minimum of N. N grows geometrically, so that decoding, which needs one more position in each step,
                seldom computes the tensor again.
            parameters: The parameters and buffers from which the tensor is computed.
            compute: Function that computes the tensor for any N.
            training: Whether the encoding is in training mode.
            limit: Maximum of N.
        """
        if torch.compiler.is_compiling():  # neither use nor change the value of uncompiled forward passes
            return compute(length), length
        if not self.keeps(parameters, training=training):
            self.clear()
            return compute(length), length
        current = self._value is not None and self._is_current(parameters)
        if not current or self._length < length:
            self._length = max(length, min(2 * length, limit or 2 * length)) if current else length
            with torch.inference_mode(False):  # gradients may be needed later
                self._value = compute(self._length).detach()
            self._computed_from = [(p.detach(), p._version) for p in parameters]
            self._computed_at = STEPS.count
        assert self._value is not None
        return self._value, self._length

    def _is_current(self, parameters: Sequence[Tensor]) -> bool:
        """Return whether the parameters still hold the numbers from which the cached tensor was computed.

        The cache keeps references to the old parameters. Without these references, a new parameter could get the
        address of an old one, and comparing addresses would miss the change.
        """
        same = self._computed_at == STEPS.count and len(parameters) == len(self._computed_from)
        return same and all(
            (p.data_ptr(), p.dtype, p.device, p._version) == (old.data_ptr(), old.dtype, old.device, version)
            for p, (old, version) in zip(parameters, self._computed_from, strict=True)
        )


class CachingEncoding(PositionEncoding):
    """Provide the base class of encodings that, in evaluation mode, cache a tensor computed from their parameters."""

    def __init__(self, options: Any, stack: StackShape) -> None:
        super().__init__(options, stack)
        self._cache = EvaluationCache()

    def train(self, mode: bool = True) -> Self:
        self._cache.clear()
        return super().train(mode)


class GrownTables:
    """Keep tables of constants with one row per position, and compute more rows in float64 when they are needed."""

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
        """Return tables with at least `length` rows.

        Args:
            length: Minimum number of rows.
            first: Minimum number of rows at the first call.
            device: Device of the tables.
            dtype: Dtype of the tables.
            compute: Function that returns float64 tables with a given number of rows.
        """
        old = self._tables
        rows = len(old[0]) if old else 0
        if rows >= length and old[0].dtype == dtype and old[0].device == device:
            return old
        longest = rows if rows >= length else max(first, 2 * rows, length)
        with torch.inference_mode(False):  # training may save the tables for the backward pass
            tables = tuple(table.to(device, dtype) for table in compute(longest))
        if not exporting():  # tensors of a graph that is exported hold no numbers
            self._tables = tables
        return tables
