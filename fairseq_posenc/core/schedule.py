"""Choose the layers of a stack in which an encoding is active, by its option `layers`."""

from __future__ import annotations

import re

from .refusal import InputError

HELP = (
    "Layers in which the encoding is active, counted from 1: numbers with colons between them (4:8:12), ranges (1-4), "
    "every-N (layers N, 2N, 3N, ...) or every-N-skip (all layers except N, 2N, 3N, ...). Unset: all layers."
)
WINDOW_HELP = (
    "Number of tokens to which attention is limited in the layers in which the encoding is active. In a decoder, a "
    "query attends to itself and to the window - 1 tokens before it; in an encoder, to tokens up to window / 2 away on "
    "each side, rounded down. Unset: all tokens."
)
_PERIODIC = re.compile(r"every-([0-9]+)(-skip)?")
_ONE_OR_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")


def numbers(text: str | None, layers: int) -> tuple[int, ...]:
    """Return the numbers of the layers that the option `layers` names, from 1 and in ascending order.

    Args:
        text: Value of the option; None means all layers. As in other options, `-` and `_` mean the same.
        layers: Number of layers of the stack.

    Raises:
        ValueError: The text is not a schedule, or it names no layers, layers that do not exist, or a layer twice.
    """
    if text is None:
        return tuple(range(1, layers + 1))
    periodic = _PERIODIC.fullmatch(text.replace("_", "-"))
    return _periodic(text, int(periodic[1]), bool(periodic[2]), layers) if periodic else _listed(text, layers)


def _periodic(text: str, step: int, skips: bool, layers: int) -> tuple[int, ...]:
    if step < 2:
        raise InputError(f"layers={text}: the number after every- must be at least 2")
    if step > layers:
        effect = "skips no layer" if skips else "names no layer"
        raise InputError(f"layers={text} {effect}, because the stack has only {layers} layers: choose a smaller number")
    return tuple(number for number in range(1, layers + 1) if bool(number % step) == skips)


def _listed(text: str, layers: int) -> tuple[int, ...]:
    chosen: list[int] = []
    for part in text.split(":"):
        first, last = _bounds(text, part)
        for number in (first, last):
            if not 1 <= number <= layers:
                raise InputError(
                    f"layers={text}: layer {number} does not exist; the stack has the layers 1 to {layers}"
                )
        chosen += range(first, last + 1)
    twice = next((number for number in chosen if chosen.count(number) > 1), None)
    if twice is not None:
        raise InputError(f"layers={text} names layer {twice} twice: name it once")
    return tuple(sorted(chosen))


def _bounds(text: str, part: str) -> tuple[int, int]:
    """Return the first and the last layer that a part of the option names, such as `4` or `1-4`."""
    match = _ONE_OR_RANGE.fullmatch(part.replace("_", "-"))
    if not match:
        forms = "numbers of layers with colons between them (4:8:12), ranges (1-4), every-N or every-N-skip"
        raise InputError(f"layers={text} must be {forms}")
    first, last = int(match[1]), int(match[2] or match[1])
    if match[2] and first >= last:
        raise InputError(f"layers={text}: the range {part} must lead from a lower to a higher number")
    return first, last
