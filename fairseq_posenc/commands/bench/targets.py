"""Define the targets: what each encoding may cost, relative to a layer without positions.

The project set these targets after measuring prototypes of a base layer in float32 on two CPU cores, with higher
thresholds of the memory allocator. A batch has 16 sequences at n = 128 and 4 sequences at n = 512. A ratio may exceed
its target by `NOISE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

NOISE = 0.03


@dataclass(frozen=True)
class Family:
    """Group encodings that have the same targets.

    Args:
        short: Targets for training and inference at n = 128.
        long: Targets for training and inference at n = 512.
        members: Encodings of the family as `name` or `name:options`, separated by spaces.
        stretch: Aims for training and inference at n = 512; None without aims. An aim is the ratio that we expect from
            the best known method.
    """

    name: str
    short: tuple[float, float]
    long: tuple[float, float]
    members: str
    stretch: tuple[float, float] | None = None

    def at(self, length: int, mode: str) -> float | None:
        """Return the target for a length and a mode; None without a target."""
        pair = {128: self.short, 512: self.long}.get(length)
        return None if pair is None else pair[mode == "infer"]

    def aim(self, length: int, mode: str) -> float | None:
        """Return the aim for a length and a mode; None without an aim. Aims exist only for the length 512."""
        return self.stretch[mode == "infer"] if self.stretch and length == 512 else None


_INPUT = "none learned sinusoidal sentence-restart segments-input"
_BIASES = "t5 raffel diet-rel diet-abs alibi kerple sandwich fire segments m1 m2"
#: The family of every encoding that only embeds or adds biases.
CONTENT_FREE = Family("content-free", (1.02, 1.02), (1.03, 1.05), f"{_INPUT} {_BIASES}", (1.02, 1.02))
#: TUPE is content-free, too. By default it has a table per layer, which costs more in training.
TUPE = Family("TUPE", (1.05, 1.02), (1.06, 1.05), "tupe", (1.02, 1.02))
FAMILIES = (
    CONTENT_FREE,
    TUPE,
    Family("rotary", (1.03, 1.04), (1.03, 1.05), "rope xpos", (1.02, 1.02)),
    Family("Shaw clipped", (1.03, 1.03), (1.05, 1.07), "shaw:clip=64 lfhc:clip=64", (1.02, 1.02)),
    Family("Shaw", (1.05, 1.05), (1.10, 1.11), "shaw lfhc", (1.07, 1.08)),
    Family("XL", (1.07, 1.07), (1.12, 1.13), "xl gcdf", (1.07, 1.08)),
    Family("M4 clipped", (1.05, 1.06), (1.10, 1.13), "m4:clip=64", (1.04, 1.04)),
    Family("M4M clipped", (1.09, 1.10), (1.14, 1.17), "m4m:clip=64", (1.04, 1.04)),
    Family("M4", (1.07, 1.08), (1.18, 1.25), "m4", (1.14, 1.15)),
    Family("M4+Reset", (1.10, 1.11), (1.21, 1.28), "m4:reset=vector", (1.14, 1.15)),
    Family("M4M", (1.15, 1.16), (1.26, 1.33), "m4m", (1.14, 1.15)),
    Family("DeBERTa", (1.12, 1.10), (1.27, 1.28), "deberta", (1.15, 1.15)),
    Family("M3", (1.07, 1.03), (1.20, 1.10), "m3"),
    Family("Forgetting", (1.03, 1.04), (1.09, 1.09), "fox"),
    Family("DAPE", (1.18, 1.24), (2.00, 2.50), "alibi+dape"),
)
#: Peak memory of the attention core in training at n = 512, relative to the explicit core without positions.
MEMORY = {"shaw": 1.15, "xl": 1.15, "m3": 1.15, "deberta": 1.35, "m4": 1.35, "m4m": 1.5}
#: A decoding step of one layer with 511 cached columns. Content-free encodings have 1.02, clipped ones 1.10.
DECODING = {"shaw": 1.05, "m4": 1.4, "m4m": 1.4, "m3": 1.4, "xl": 1.2, "deberta": 1.6}
DECODING_LENGTH = 512
CONTENT_FREE_DECODING, CLIPPED_DECODING = 1.02, 1.10
#: A training step with memory, relative to one without. A token of evaluation, relative to one of a sliding window.
MEMORY_TRAINING, MEMORY_EVALUATION = 1.6, 1 / 50
#: Translation: time per word (train, infer), relative to stock fairseq; the reciprocal of words per second.
CONTENT_FREE_WORDS, OTHER_WORDS = (1 / 0.97, 1.0), (1 / 0.85, 1 / 0.85)
WORDS = dict.fromkeys(("shaw", "lfhc", "xl", "gcdf"), (1 / 0.9, 1 / 0.85)) | {"deberta": (1 / 0.85, 1 / 0.7)}


def options_of(name: str) -> Iterator[str]:
    """Yield the options with which an encoding has targets; an empty text stands for its default options."""
    for family in FAMILIES:
        for member in family.members.split():
            encoding, _, options = member.partition(":")
            if encoding == name:
                yield options


def family(encoding: str, options: str, hooks: Set[str]) -> Family | None:
    """Return the family whose targets apply to the encoding; None if the encoding has no targets.

    An encoding that no family lists is content-free if `embed` and `bias` are its only hooks.
    """
    label = f"{encoding}:{options}" if options else encoding
    listed = [group for group in FAMILIES if label in group.members.split()]
    if listed:
        return listed[0]
    return CONTENT_FREE if hooks <= {"embed", "bias"} else None


def of_memory(encoding: str, options: str, length: int) -> float | None:
    """Return the target for the peak memory; None if there is none.

    The default options of an encoding have the same target as the options that a family lists; other options have no
    target.
    """
    return MEMORY.get(encoding) if length == 512 and options in options_of(encoding) else None


def of_translation(encoding: str, options: str, hooks: Set[str], mode: str) -> float:
    """Return the target for the time per word in translation, relative to fairseq's own `transformer`."""
    free = family(encoding, options, hooks) in (CONTENT_FREE, TUPE)
    return WORDS.get(encoding, CONTENT_FREE_WORDS if free else OTHER_WORDS)[mode == "infer"]


def of_decoding(encoding: str, options: str, hooks: Set[str], length: int) -> float | None:
    """Return the target for a decoding step; None if there is none. Only `DECODING_LENGTH` has targets."""
    if length != DECODING_LENGTH:
        return None
    if encoding in DECODING and options in ("", "reset=vector"):
        return DECODING[encoding]
    if options.startswith("clip="):
        return CLIPPED_DECODING
    group = family(encoding, options, hooks)
    return CONTENT_FREE_DECODING if group in (CONTENT_FREE, TUPE) else None
