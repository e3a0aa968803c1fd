"""Keep the segment memory of a language model (Dai et al. 2019, Transformer-XL).

Legend: T tokens of a segment, M columns of memory, B streams (long texts read side by side), d model width, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, cat

from ..core.refusal import InputError


@dataclass
class SegmentMemory:
    """Hold the inputs of each layer at the last tokens before a segment, without gradient.

    A long text is read segment by segment. Call `begin` before each segment, and `keep` with the layers' inputs after
    it. The memory is empty for the first segment. If fairseq repeats a step that failed, `begin` restores the memory
    that the segment had the first time.

    Args:
        length: Maximum number of states per layer; 0 means no memory.
        span: Maximum number of keys to which a query attends, including its own (`same_length`); None means no limit.
        states: L tensors [M, B, d], with M at most `length`; empty if there is no memory.
        segment: Number of the segment that began last, from 0.
        kept: Number of the last segment that passed its states to `keep`.
    """

    length: int
    span: int | None = None
    states: tuple[Tensor, ...] = ()
    segment: int = -1
    kept: int = -1
    _before: tuple[Tensor, ...] = ()

    def __post_init__(self) -> None:
        if self.length < 0:
            raise ValueError(f"length={self.length}: the number of states in memory must be at least 0")

    @property
    def columns(self) -> int:
        """Return the number of columns that the memory holds now, M."""
        return self.states[0].shape[0] if self.states else 0

    def begin(self, segment: int) -> SegmentMemory:
        """Return this object with the memory for the segment with the given number.

        Raises:
            ValueError: The segment is neither the first one nor a repetition of the last one, and `keep` was not called
                for the segment before it.
        """
        if segment == 0:
            self.states = ()
        elif segment == self.segment:
            self.states = self._before
        elif segment != self.segment + 1 or (self.length and self.kept != self.segment):
            last = self.kept if self.length else self.segment
            previous = f"segment {last}" if last >= 0 else "nothing"
            raise InputError(
                f"segment {segment} of the streams came after {previous}, so the memory of segment {segment} is "
                "missing. Read the segments of the streams in order. If an update failed because the GPU memory was "
                "full, lower --batch-size. If the checkpoint was trained without a memory of segments, give "
                "--reset-dataloader."
            )
        self.segment, self._before = segment, self.states
        return self

    def keep(self, inputs: Sequence[Tensor]) -> None:
        """Add the inputs of each layer in this segment to the memory, L tensors [T, B, d]."""
        if not self.length:
            return
        if self.states and len(inputs) != len(self.states):
            raise ValueError(
                f"the memory has {len(self.states)} layers, but keep() got the inputs of {len(inputs)} layers: give "
                "one tensor for every layer"
            )
        self.kept = self.segment
        old = self.states or (None,) * len(inputs)
        self.states = tuple(self._last(*pair) for pair in zip(old, inputs, strict=True))

    def _last(self, old: Tensor | None, new: Tensor) -> Tensor:
        new = new.detach()
        missing = self.length - new.shape[0]
        if old is None or missing <= 0:
            return new[-self.length :]
        return cat([old[-missing:].to(new), new])
