"""Define what `gpu-check` checks: the encodings with their options, and the sizes of the inputs."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from ...attention import PATHS
from ...encodings import StackShape, specs
from ...stack import Stack
from ..listing import on_meta
from ..rounding import drawn


class Subject(NamedTuple):
    """Hold an encoding and its options, and whether it is in a decoder (`causal`) or in an encoder."""

    encoding: str
    options: str
    causal: bool

    def __str__(self) -> str:
        options = f" {self.options}" if self.options else ""
        return f"{self.encoding}{options} {'decoder' if self.causal else 'encoder'}"


@dataclass(frozen=True)
class Sizes:
    """Hold the sizes and precisions that the parts of `gpu-check` use.

    Args:
        device: The device that is checked.
        length, head_dim: Tokens of a sample and width of a head, for the part `laws`.
        clip: Value of the option `clip` with which tables are so small that FlexAttention can read them.
        drift_length: Tokens of a sample, for the drift.
        dim, heads: Sizes of the layer whose cost is measured.
        batches: Pairs (n, B) for the cost; only the first pair has targets.
        rounds: Number of measurements of each time. steps: Number of steps in each measurement.
        precisions: Precisions in which the part `laws` checks encodings.
        dtype: Precision in which the cost is measured.
        paths: Paths whose cost is measured.
        few: Whether to check only one encoding for each combination of hooks.
    """

    device: torch.device
    length: int = 160
    head_dim: int = 32
    clip: int = 64
    drift_length: int = 512
    dim: int = 768
    heads: int = 12
    batches: tuple[tuple[int, int], ...] = ((512, 32), (128, 64), (2048, 8))
    rounds: int = 10
    steps: int = 5
    precisions: tuple[torch.dtype, ...] = (torch.bfloat16, torch.float32, torch.float16)
    dtype: torch.dtype = torch.bfloat16
    paths: tuple[str, ...] = PATHS
    few: bool = False

    @classmethod
    def of(cls, device: torch.device) -> Sizes:
        """Return the sizes of a full check (without --quick) on a device."""
        return cls(device)

    @classmethod
    def quick(cls, device: torch.device) -> Sizes:
        """Return small sizes and few encodings; on a CPU they are only for trying the command."""
        if device.type == "cuda":
            return cls(device, batches=((512, 32),), precisions=(torch.bfloat16, torch.float32), few=True)
        small = cls(
            device, length=20, head_dim=16, clip=4, drift_length=16, dim=32, heads=2, batches=((16, 2),), rounds=2
        )
        return replace(small, precisions=(torch.float32,), dtype=torch.float32, steps=1, paths=("auto",), few=True)

    def shape(self, causal: bool, length: int, layers: int = 2, dim: int | None = None) -> StackShape:
        """Return the shape of a stack with two heads, or with `heads` heads if its width `dim` is given."""
        heads = 2 if dim is None else self.heads
        return StackShape(layers, heads, dim or 2 * self.head_dim, length, causal=causal, has_cls=not causal)

    def subjects(self) -> list[Subject]:
        """Return all encodings, in encoders and decoders, with and without `clip`.

        If `few` is true, return only one encoding for each set of hooks.
        """
        ways = itertools.product(specs(), ("", f"clip={self.clip}"), (False, True))
        works = [subject for way in ways if self.hooks(subject := Subject(*way)) is not None]
        if not self.few:
            return works
        last = {(self.hooks(subject), subject.options): subject for subject in works}
        return list(last.values())

    def hooks(self, subject: Subject) -> tuple[str, ...] | None:
        """Return the hooks of an encoding, or None if the stack or the encoding does not support the options."""
        built = on_meta(subject.encoding, subject.options, self.shape(subject.causal, self.length))
        return None if built is None else tuple(hook for member in built.members.values() for hook in member.hooks)

    def stack(self, subject: Subject, seed: int = 1) -> Stack:
        """Return the stack in float32 that the part `laws` checks (see `laws.py`), with initial values from `drawn`."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            stack = Stack(subject.encoding, subject.options, self.shape(subject.causal, self.length), ffn=1)
        return drawn(stack, seed).to(self.device).eval()
