"""Cache the keys and values of earlier columns for incremental decoding."""

from __future__ import annotations

import torch
from torch import Tensor


class KeyValueCache:
    """Hold projected keys k', values and, if encodings read them, raw keys and numbers from the layer's input.

    Each tensor is [B, h, columns, D]. Numbers from the input may have a last axis other than D, and a
    dtype of their own.

    The buffers grow geometrically, so that most decoding steps write one column instead of copying all columns.
    Methods return views of the buffers, which are valid until the next call of `reorder`. The buffers are ordinary
    tensors also in inference mode, so that a cache can be filled in one mode and continued in another.
    """

    def __init__(self) -> None:
        self._buffers: list[Tensor] = []
        #: The buffer that `reorder` replaced last; its memory is used again by the next call of `reorder`.
        self._spare: Tensor | None = None
        #: True if no other object, such as an autograd graph, can hold a reference to the buffers.
        self._own = False
        self.length = 0

    def append(self, *new: Tensor) -> tuple[Tensor, ...]:
        """Add the new columns of each tensor [B, h, T, D], and return all columns of each tensor so far."""
        if self._buffers and len(new) != len(self._buffers):
            raise ValueError(f"append needs {len(self._buffers)} tensors, as in the first call, but got {len(new)}")
        start, self.length = self.length, self.length + new[0].shape[2]
        if torch.is_grad_enabled():
            self._join(new, start)  # a write would change a buffer that autograd saved
        else:
            self._write(new, start)
        return self.columns()

    @property
    def batch(self) -> int:
        """Return the number of samples in the cache, or 0 if the cache is empty."""
        return self._buffers[0].shape[0] if self._buffers else 0

    def columns(self) -> tuple[Tensor, ...]:
        """Return all columns that each cached tensor has so far, as views of the buffers."""
        return tuple(map(self._used, self._buffers))

    def _used(self, buffer: Tensor) -> Tensor:
        return buffer.narrow(2, 0, self.length)

    def reorder(self, order: Tensor) -> None:
        """Select and repeat the samples at the indices `order`, [B'] int64, as beam search requests."""
        if torch.is_grad_enabled():
            self._buffers = [buffer.index_select(0, order) for buffer in self._buffers]
            self._own, self._spare = False, None
        else:
            self._buffers = [self._reordered(buffer, order) for buffer in self._buffers]
            self._own = True

    def _reordered(self, buffer: Tensor, order: Tensor) -> Tensor:
        """Return the reordered buffer, written into the spare buffer if its shape and dtype are right.

        The old buffer becomes the next spare buffer, unless other code may still hold a reference to it.
        """
        shape = (len(order), *buffer.shape[1:])
        new, self._spare = self._spare, buffer if self._own else None
        if new is None or new.shape != shape or new.dtype != buffer.dtype:
            new = _ordinary(buffer, shape)
        mostly = 2 * self.length > buffer.shape[2]  # copying all in one piece is then no slower
        old, out = (buffer, new) if mostly else (self._used(buffer), self._used(new))
        torch.index_select(old, 0, order, out=out)
        return new

    def _join(self, new: tuple[Tensor, ...], start: int) -> None:
        old = [buffer[:, :, :start] for buffer in self._buffers]
        self._buffers = [torch.cat(pair, 2) for pair in zip(old, new, strict=True)] if old else list(new)
        self._own, self._spare = False, None

    def _write(self, new: tuple[Tensor, ...], start: int) -> None:
        if not self._buffers or self._buffers[0].shape[2] < self.length:
            self._grow(new, start)
        for buffer, tensor in zip(self._buffers, new, strict=True):
            buffer.narrow(2, start, tensor.shape[2]).copy_(tensor)

    def _grow(self, new: tuple[Tensor, ...], start: int) -> None:
        capacity = max(2 * self.length, 16)
        old, self._buffers = self._buffers, []
        for i, tensor in enumerate(new):
            batch, heads, _, dim = tensor.shape
            buffer = _ordinary(tensor, (batch, heads, capacity, dim)).zero_()
            if old:
                buffer[:, :, :start] = old[i][:, :, :start]
            self._buffers.append(buffer)
        self._own = True


def _ordinary(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor with the given shape and undefined numbers, which can be changed in any mode of torch."""
    with torch.inference_mode(False):
        return torch.empty(shape, dtype=like.dtype, device=like.device)
