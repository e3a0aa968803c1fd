"""Say what an encoding can do: its capabilities, its size, and whether it takes the option `layers`."""

from __future__ import annotations

from dataclasses import asdict, replace

import torch

from ..core.base import StackShape
from ..core.compose import Composition
from ..core.syntax import NAME_FLAG, Args
from .building import build, spec_of

#: The size at which tables show the parameters of encodings: that of BERT-base.
BASE = StackShape(layers=12, heads=12, dim=768, max_length=512, has_cls=True)


def at_base_size(encoding: str, options: Args = None, flag: str = NAME_FLAG) -> Composition:
    """Build an encoding at base size without allocating its tensors: for an encoder if possible, else for a decoder.

    Raises:
        ValueError: The encoding cannot be built. The message names the setting `flag`.
    """
    if built := on_meta(encoding, options, BASE):
        return built
    with torch.device("meta"):
        decoder = replace(BASE, causal=True, has_cls=False, name_flag=flag, args_flag=flag)
        return build(encoding, options, decoder)


def declared(spec: str, options: Args = None) -> dict[str, bool]:
    """Return which capabilities the encoding has in encoders, in decoders or in both.

    The encoders have a [CLS] only if the encoding does not work in encoders or decoders without one.
    """
    return _declared(spec, options, has_cls=False) or _declared(spec, options, has_cls=True)


def _declared(spec: str, options: Args, has_cls: bool) -> dict[str, bool]:
    capabilities: dict[str, bool] = {}
    for causal in (True, False):
        if built := on_meta(spec, options, replace(BASE, causal=causal, has_cls=has_cls)):
            for key, value in asdict(built.capabilities).items():
                capabilities[key] = value or capabilities.get(key, False)
    return capabilities


def acts_in_layers(name: str) -> bool:
    """Return whether the encoding acts in the layers, if only by a window, so that it takes the option `layers`."""
    shapes = [replace(BASE, causal=causal, has_cls=not causal) for causal in (False, True)]
    options: list[dict[str, str | int]] = [{f"{name}.layers": "2"}, {f"{name}.layers": "2", f"{name}.window": 4}]
    return any(on_meta(spec_of(name), given, shape) for shape in shapes for given in options)


def on_meta(spec: str, options: Args, shape: StackShape) -> Composition | None:
    """Build an encoding without allocating its parameters. Return None if the encoding does not support this shape."""
    try:
        with torch.device("meta"):
            return build(spec, options, shape)
    except ValueError:
        return None
