"""List the encodings to test in translation models, with their flags, and build tiny models of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from fairseq_posenc.encodings import Composition, StackShape, build, get, names, spec_of

from . import lm, masked_lm, support

#: By kind of model, the module that builds and trains it.
KINDS: dict[str, Any] = {"translation": support, "language model": lm, "masked language model": masked_lm}


def in_stack(name: str, causal: bool) -> Composition:
    """Build an encoding for the decoder (causal) or the encoder of a tiny model."""
    return build(name, None, StackShape(layers=2, heads=2, dim=16, max_length=24, causal=causal))


def serves(name: str, causal: bool) -> bool:
    """Return whether the decoder (causal) or the encoder of a tiny model supports the encoding."""
    try:
        in_stack(name, causal)
    except ValueError:
        return False
    return True


#: Each encoding, except those of segments, which translation and language models have not.
SINGLE = [spec_of(name) for name in names() if not get(name).needs_segments]
DECODERS = [name for name in SINGLE if serves(name, causal=True)]
#: With combined ones: the first also caches raw keys, and the second adds vectors to the embedding.
CASES = [*SINGLE, "rope+shaw", "learned+t5"]


def position_flags(name: str) -> list[str]:
    """Return flags that put the encoding into every stack that supports it, and `none` into the other."""
    able = [side for side, causal in (("encoder", False), ("decoder", True)) if serves(name, causal)]
    return ["--pos-enc", name] if len(able) == 2 else ["--pos-enc", "none", f"--pos-enc-{able[0]}", name]


def in_turn(encodings: Iterable[str]) -> list[Any]:
    """Return encodings as parameters of a test; those without a hook that no earlier one has are marked `long`.

    The models know the hooks of an encoding and not its name, and the laws test every encoding in a stack.
    """
    known: set[str] = set()
    parameters = []
    for name in encodings:
        members = in_stack(name, causal=serves(name, causal=True)).members
        hooks = {hook for member in members.values() for hook in member.hooks}
        marks = [pytest.mark.long] if known and hooks <= known else []
        known |= hooks
        parameters.append(pytest.param(name, id=name, marks=marks))
    return parameters
