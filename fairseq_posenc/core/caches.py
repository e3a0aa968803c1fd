"""Cache computed tensors for the longest sequence up to now; shorter sequences use slices of these tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from ..ops.compiled import eagerly, exporting
from ..positions import Positions
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


class _Kept(NamedTuple):
    """Hold a computed tensor, and what it was computed from.

    The references to the parameters keep their memory, so that no new parameter can have the address of an old one.
    """

    value: Tensor
    length: int
    parameters: list[tuple[Tensor, int]]
    steps: int

    def is_current(self, parameters: Sequence[Tensor]) -> bool:
        """Return whether the parameters still hold the numbers from which the tensor was computed."""
        same = self.steps == STEPS.count and len(parameters) == len(self.parameters)
        return same and all(
            (p.data_ptr(), p.dtype, p.device, p._version) == (old.data_ptr(), old.dtype, old.device, version)
            for p, (old, version) in zip(parameters, self.parameters, strict=True)
        )


class DecodingCache:
    """Cache a tensor that is computed from parameters, for the steps of an incremental decoding.

    A forward pass without cached tokens always computes the tensor again, so that nothing is kept when weights are
    swapped through `parameter.data`, which torch does not notice. While a model decodes, the tensor is also computed
    again after a parameter was written, replaced, cast or moved, and after any optimizer step. A copy or pickle of a
    cache is empty. Several threads may use a cache at the same time.
    """

    def __init__(self) -> None:
        self._kept: _Kept | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

    def keeps(self, parameters: Sequence[Tensor], positions: Positions, *, training: bool) -> bool:
        """Return whether `get` keeps what it computes in this forward pass; if not, delete what was kept."""
        if not eagerly():  # torch traces or transforms the model, and cannot check the parameters
            return False
        decodes = not training and positions.offset > positions.memory and not any(p.is_inference() for p in parameters)
        if decodes and not (torch.is_grad_enabled() and any(p.requires_grad for p in parameters)):
            return True
        self._kept = None
        return False

    def get(
        self,
        length: int,
        parameters: Sequence[Tensor],
        compute: Callable[[int], Tensor],
        positions: Positions,
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
            positions: Positions of this forward pass.
            training: Whether the encoding is in training mode.
            limit: Maximum of N.
        """
        if not self.keeps(parameters, positions, training=training):
            return compute(length), length
        kept = self._kept  # one read, because another thread may replace it
        if kept is None or kept.length < length or not kept.is_current(parameters):
            longest = max(length, min(2 * length, limit or 2 * length))
            before = [(p.detach(), p._version) for p in parameters], STEPS.count
            with torch.inference_mode(False):  # gradients may be needed later
                value = compute(longest).detach()
            self._kept = kept = _Kept(value, longest, *before)
        return kept.value, kept.length


class CachingEncoding(PositionEncoding):
    """Provide the base class of encodings that compute a tensor from parameters, and keep it while a model decodes."""

    def __init__(self, options: Any, stack: StackShape) -> None:
        super().__init__(options, stack)
        self._cache = DecodingCache()

    def of_distances(
        self, positions: Positions, parameters: Sequence[Tensor], compute: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return `compute(positions.distances)`, whose last axis has the distances.

        While a model decodes, the result for more distances is kept, and this method returns a slice of it. Nothing is
        kept if the caller gives its own positions, because their distances differ too much between batches.

        Args:
            positions: The positions of this forward pass.
            parameters: See `DecodingCache.get`.
            compute: Function that returns a tensor [..., N] for N distances.
        """
        if positions.ids is not None:
            return compute(positions.distances)
        value, n = self._cache.get(
            positions.key_length,
            parameters,
            lambda n: compute(torch.arange(1 - n, n, device=positions.device)),
            positions,
            training=self.training,
        )
        return value[..., n - positions.key_length : n - 1 + positions.query_length]


class GrownTables:
    """Keep tables of constants with one row per position, and compute more rows in float64 when they are needed.

    A copy or pickle has no rows. Several threads may use the tables at the same time.
    """

    def __init__(self) -> None:
        self._tables: tuple[Tensor, ...] = ()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()

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
