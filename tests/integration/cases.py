"""List the encodings to test in translation models, with their flags, and build tiny models of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from fairseq_posenc.encodings import Composition, StackShape, build, get, names, spec_of

#: Each encoding, except those of segments, which translation has not; and combined ones: the first also caches raw
#: keys, and the second adds vectors to the embedding.
CASES: list[tuple[str, str | None]] = [
    *((spec_of(name), None) for name in names() if not get(name).needs_segments),
    ("rope+shaw", None),
    ("learned+t5", None),
]


def position_flags(name: str, args: str | None) -> list[str]:
    """Return flags that put the encoding into every stack that supports it, and `none` into the other."""
    able = {side: serves(name, args, causal) for side, causal in (("encoder", False), ("decoder", True))}
    if all(able.values()):
        return ["--pos-enc", name, *(["--pos-enc-args", args] if args else [])]
    side = next(side for side, can in able.items() if can)
    return ["--pos-enc", "none", f"--pos-enc-{side}", name, *([f"--pos-enc-{side}-args", args] if args else [])]


def in_stack(name: str, args: str | None, causal: bool) -> Composition:
    """Build an encoding for the decoder (causal) or the encoder of a tiny model."""
    return build(name, args, StackShape(layers=2, heads=2, dim=16, max_length=24, causal=causal))


def serves(name: str, args: str | None, causal: bool) -> bool:
    """Return whether the decoder (causal) or the encoder of a tiny model supports the encoding."""
    try:
        in_stack(name, args, causal)
    except ValueError:
        return False
    return True


def hooks(name: str, args: str | None) -> set[str]:
    """Return the hooks of an encoding in a decoder, or in an encoder if it works in encoders only."""
    members = in_stack(name, args, causal=serves(name, args, causal=True)).members
    return {hook for member in members.values() for hook in member.hooks}


def in_turn(cases: Iterable[tuple[str, str | None]]) -> list[Any]:
    """Return cases as parameters of a test: those with a hook that no earlier case has, and the others marked `long`.

    The models know the hooks of an encoding and not its name, and the laws test every encoding in a stack.
    """
    known: set[str] = set()
    parameters = []
    for name, args in cases:
        marks = [pytest.mark.long] if known and hooks(name, args) <= known else []
        known |= hooks(name, args)
        parameters.append(pytest.param((name, args), id=f"{name}({args})" if args else name, marks=marks))
    return parameters
