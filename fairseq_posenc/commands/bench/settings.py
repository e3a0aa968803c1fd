"""What is measured: encodings, sizes, directions.

Legend: B batch, n tokens of a sequence, h heads, d width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ...encodings import StackShape, build, names
from ..listing import on_meta
from . import targets


@dataclass(frozen=True)
class Shape:
    """Sizes of a layer, and the batches that it is measured on.

    Args:
        batches: (n, B), on a CPU. on_gpu: the same for a GPU.
        has_targets: the targets are of this shape.
    """

    name: str
    dim: int
    heads: int
    batches: tuple[tuple[int, int], ...]
    on_gpu: tuple[tuple[int, int], ...]
    has_targets: bool = False

    def on(self, device: torch.device) -> tuple[tuple[int, int], ...]:
        """(n, B) for this device."""
        return self.batches if device.type == "cpu" else self.on_gpu


#: BERT-base's layer, and the small one of the DIET paper's Table 1
SHAPES = {
    "base": Shape("base", 768, 12, ((128, 16), (512, 4)), ((128, 64), (512, 32), (2048, 8)), has_targets=True),
    "small": Shape("small", 512, 8, ((128, 16), (512, 4)), ((128, 64), (512, 32), (2048, 8))),
}


@dataclass(frozen=True)
class Subject:
    """An encoding as the user asks for it."""

    encoding: str
    options: str = ""

    def __str__(self) -> str:
        return f"{self.encoding}:{self.options}" if self.options else self.encoding

    @classmethod
    def of(cls, text: str) -> Subject:
        """`m4:clip=64` -> m4 with clip=64."""
        name, _, options = text.partition(":")
        return cls(name, options)

    def causal(self) -> bool:
        """Encoders where it serves them, as the targets are of encoders; else decoders.

        Raises:
            ValueError: unknown names or options.
        """
        if self.serves(causal=False):
            return False
        with torch.device("meta"):
            build(self.encoding, self.options, self._shape(causal=True))
        return True

    def serves(self, *, causal: bool) -> bool:
        """Whether it can be built for decoders, or for encoders."""
        return on_meta(self.encoding, self.options, self._shape(causal)) is not None

    def decodes(self) -> bool:
        """Whether one token can follow the other: decoders, whose keys are not compressed."""
        return self.serves(causal=True) and "compress" not in self.hooks()

    def hooks(self) -> set[str]:
        """What it implements with these options."""
        built = on_meta(self.encoding, self.options, self._shape(self.causal()))
        return {hook for member in built.members.values() for hook in member.hooks} if built else set()

    def _shape(self, causal: bool) -> StackShape:
        return StackShape(1, 12, 768, 512, causal=causal, has_cls=not causal)


@dataclass(frozen=True)
class Setting:
    """What the subjects of one group have in common.

    Args:
        what: layer, model or decode. mode: train or infer.
        length: n; in decoding, columns seen. batch: B. layers: L. padded: on the left, up to half a sequence.
    """

    what: str
    mode: str
    shape: Shape
    length: int
    batch: int
    device: torch.device
    causal: bool = False
    padded: bool = False
    layers: int = 1

    @property
    def dtype(self) -> torch.dtype:
        """float32 on a CPU, whose bf16 says nothing about a GPU's (PERFORMANCE.md); bfloat16 on a GPU."""
        return torch.float32 if self.device.type == "cpu" else torch.bfloat16

    @property
    def stack(self) -> StackShape:
        """n is the longest sequence that the stack knows, so that tables have no rows that are never read."""
        size = (self.layers, self.shape.heads, self.shape.dim, self.length)
        return StackShape(*size, causal=self.causal, has_cls=not self.causal)

    def __str__(self) -> str:
        pads = ", left-padded" if self.padded else ""
        return f"{self.what} {self.mode}, {self.shape.name}, n={self.length} x {self.batch}{pads}"


def default_subjects() -> list[Subject]:
    """Every encoding of the registry, and the options that have a target of their own."""
    found: list[Subject] = []
    for name in names():
        found += [Subject(name), *(Subject(name, options) for options in targets.options_of(name) if options)]
    return found


def parsed_subjects(words: Sequence[str]) -> list[Subject]:
    """The subjects that the user names.

    Raises:
        ValueError: unknown names or options, or one that is named twice.
    """
    found = [Subject.of(word) for word in words]
    for one in found:
        one.causal()
        if found.count(one) > 1:
            raise ValueError(f"--encodings names {one} twice")
    return found


def with_targets(subjects: Sequence[Subject]) -> list[Subject]:
    """Those that have a target as layers."""
    return [one for one in subjects if targets.family(one.encoding, one.options, one.hooks())]
