"""Describe what the benchmark measures: encodings, sizes and modes.

Legend: B batch size, n tokens of a sequence, h heads, d width, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ...encodings import StackShape, build, specs
from ..listing import on_meta
from . import targets


@dataclass(frozen=True)
class Shape:
    """Hold the sizes of a layer, and the batch sizes with which the layer is measured.

    Args:
        batches: Pairs (n, B) for a CPU.
        on_gpu: Pairs (n, B) for a GPU.
        has_targets: Whether the project has set targets for layers of this shape.
        layers: Number of layers of a whole model.
    """

    name: str
    dim: int
    heads: int
    batches: tuple[tuple[int, int], ...]
    on_gpu: tuple[tuple[int, int], ...]
    has_targets: bool = False
    layers: int = 4

    def on(self, device: torch.device) -> tuple[tuple[int, int], ...]:
        """Return the pairs (n, B) for this device."""
        return self.batches if device.type == "cpu" else self.on_gpu


#: The models of the DIET paper's Table 1, BERT-base and a small one
SHAPES = {
    "base": Shape(
        "base", 768, 12, ((128, 16), (512, 4)), ((128, 64), (512, 32), (2048, 8)), has_targets=True, layers=12
    ),
    "small": Shape("small", 512, 8, ((128, 16), (512, 4)), ((128, 64), (512, 32), (2048, 8)), layers=4),
}


@dataclass(frozen=True)
class Subject:
    """Hold an encoding with its options; `str` returns both in the form of --encodings."""

    encoding: str
    options: str = ""

    def __str__(self) -> str:
        return f"{self.encoding}:{self.options}" if self.options else self.encoding

    @classmethod
    def of(cls, text: str) -> Subject:
        """Parse a text such as `m4:clip=64`: the encoding m4 with the option clip=64."""
        name, _, options = text.partition(":")
        return cls(name, options)

    def causal(self) -> bool:
        """Return whether the encoding is measured in a decoder, because it does not work in encoders.

        Raises:
            ValueError: The name or the options of the encoding are unknown.
        """
        if self.serves(causal=False):
            return False
        with torch.device("meta"):
            build(self.encoding, self.options, self._shape(causal=True))
        return True

    def serves(self, *, causal: bool) -> bool:
        """Return whether the encoding works in decoders (if `causal` is true) or in encoders (otherwise)."""
        return on_meta(self.encoding, self.options, self._shape(causal)) is not None

    def decodes(self) -> bool:
        """Return whether the encoding can decode token by token: it works in decoders and does not compress keys."""
        return self.serves(causal=True) and "compress" not in self.hooks()

    def hooks(self) -> set[str]:
        """Return the hooks that the encoding implements with its options."""
        built = on_meta(self.encoding, self.options, self._shape(self.causal()))
        return {hook for member in built.members.values() for hook in member.hooks} if built else set()

    def _shape(self, causal: bool) -> StackShape:
        return StackShape(1, 12, 768, 512, causal=causal, has_cls=not causal)


@dataclass(frozen=True)
class Setting:
    """Hold the conditions of a measurement. Encodings with equal conditions are measured together.

    Args:
        what: What is measured: layer, model, decode, memory, translation or lm-memory.
        mode: train or infer.
        length: Number n of tokens in a sequence; in decoding, the number of tokens to which the last token attends.
        batch: Number of sequences.
        layers: Number of layers.
        padded: Whether sequences are padded on the left, by up to half of their length.
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
        """Return bfloat16 on a GPU, and float32 on a CPU, where times in bfloat16 would say nothing about a GPU."""
        return torch.float32 if self.device.type == "cpu" else torch.bfloat16

    @property
    def stack(self) -> StackShape:
        """Return the shape of the layers.

        The maximum length of the layers is n, so that every row of a position table is read.
        """
        size = (self.layers, self.shape.heads, self.shape.dim, self.length)
        return StackShape(*size, causal=self.causal, has_cls=not self.causal)

    def __str__(self) -> str:
        pads = ", left-padded" if self.padded else ""
        return f"{self.what} {self.mode}, {self.shape.name}, n={self.length} x {self.batch}{pads}"


def default_subjects() -> list[Subject]:
    """Return every encoding with its default options, and also with every other set of options that has a target."""
    subjects: list[Subject] = []
    for name in specs():
        subjects += [Subject(name), *(Subject(name, options) for options in targets.options_of(name) if options)]
    return subjects


def parsed_subjects(arguments: Sequence[str]) -> list[Subject]:
    """Parse the arguments of --encodings, such as `m4:clip=64`.

    Raises:
        ValueError: A name or an option is unknown, or an encoding is named twice.
    """
    subjects = [Subject.of(argument) for argument in arguments]
    for subject in subjects:
        subject.causal()
        if subjects.count(subject) > 1:
            raise ValueError(f"--encodings: {subject} occurs twice. Name each encoding only once.")
    return subjects


def with_targets(subjects: Sequence[Subject]) -> list[Subject]:
    """Return the encodings whose layers have a target."""
    return [subject for subject in subjects if targets.family(subject.encoding, subject.options, subject.hooks())]
