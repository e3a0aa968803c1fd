"""List the encodings to test in translation models, with their flags, and build tiny models of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_posenc.encodings import StackShape, build, get, names, spec_of

from . import support

#: Each encoding, except those of segments, which translation has not; and combined ones: the first also caches raw
#: keys, the second adds vectors to the embedding, and the members of the third are in different layers.
CASES: list[tuple[str, str | None]] = [
    *((spec_of(name), None) for name in names() if not get(name).needs_segments),
    ("rope+shaw", None),
    ("learned+t5", None),
    ("t5+t5-2", "t5.layers=1,t5-2.layers=2,t5-2.buckets=8"),
]


def position_flags(name: str, args: str | None) -> list[str]:
    """Return flags that put the encoding into every stack that supports it, and `none` into the other."""
    able = {side: serves(name, args, causal) for side, causal in (("encoder", False), ("decoder", True))}
    if all(able.values()):
        return ["--pos-enc", name, *(["--pos-enc-args", args] if args else [])]
    side = next(side for side, can in able.items() if can)
    return ["--pos-enc", "none", f"--pos-enc-{side}", name, *([f"--pos-enc-{side}-args", args] if args else [])]


def serves(name: str, args: str | None, causal: bool) -> bool:
    """Return whether the decoder (causal) or the encoder of a tiny model supports the encoding."""
    try:
        build(name, args, StackShape(layers=2, heads=2, dim=16, max_length=24, causal=causal))
    except ValueError:
        return False
    return True


def hooks(name: str, args: str | None) -> frozenset[str]:
    """Return the hooks of an encoding in a decoder, or in an encoder if it works in encoders only."""
    shape = StackShape(layers=2, heads=2, dim=16, max_length=24, causal=serves(name, args, causal=True))
    return frozenset(hook for member in build(name, args, shape).members.values() for hook in member.hooks)


def in_turn(cases: Iterable[tuple[str, str | None]]) -> list[Any]:
    """Return cases as parameters of a test: the first with each set of hooks, and the others marked `long`.

    The models know the hooks of an encoding and not its name, and the laws test every encoding in a stack.
    """
    known: set[frozenset[str]] = set()
    parameters = []
    for name, args in cases:
        marks = [pytest.mark.long] if hooks(name, args) in known else []
        known.add(hooks(name, args))
        parameters.append(pytest.param((name, args), id=f"{name}({args})" if args else name, marks=marks))
    return parameters


class Models(dict[Any, Any]):
    """Provide models that were trained for two updates and then moved, so that no table is near its initial value."""

    def __init__(self, data: Path) -> None:
        super().__init__()
        self.data = data

    def __missing__(self, case: tuple[str, str | None]) -> Any:
        run = support.train(self.data, *position_flags(*case), "--max-update", 2)
        assert len(run.losses) == 2
        assert all(torch.isfinite(torch.tensor(run.losses)))
        self[case] = support.move(run.model).eval(), run.trainer.task
        return self[case]
