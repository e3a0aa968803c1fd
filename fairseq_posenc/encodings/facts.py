"""Say what an encoding can do: its capabilities, its size, the option `layers` and parameters without effect."""

from __future__ import annotations

from dataclasses import asdict, replace

import torch

from ..core.base import PositionEncoding, StackShape
from ..core.compose import Composition
from ..core.options import describe
from ..core.syntax import NAME_FLAG, Args
from .building import build, get, spec_of

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


#: The kinds of stacks in which a part of an encoding may be without effect.
STACKS = {
    "encoders with a [CLS]": StackShape(layers=1, heads=2, dim=8, max_length=8, has_cls=True),
    "encoders without [CLS]": StackShape(layers=1, heads=2, dim=8, max_length=8),
    "decoders": StackShape(layers=1, heads=2, dim=8, max_length=8, causal=True),
}


def constant(name: str) -> list[tuple[str, str, list[str]]]:
    """Return the parts of an encoding that add the same number to all logits of a query, which the softmax cancels.

    Returns:
        A list of tuples (part, option, stacks). `option`, such as `form=original`, is a setting with which the encoding
        has the part; it is empty if the encoding has the part with its default options. `stacks` lists the keys of
        `STACKS` for which the encoding has the part; the list is empty if the encoding has the part wherever it works.
    """
    parts: dict[str, tuple[str, str, list[str]]] = {}
    for setting in _settings(name):
        built = {words: encoding for words, stack in STACKS.items() if (encoding := _built(name, setting, stack))}
        for part in sorted({part for encoding in built.values() for part in encoding.constant_along_row}):
            where = [words for words, encoding in built.items() if part in encoding.constant_along_row]
            parts.setdefault(part, (part, setting, where if len(where) < len(built) else []))
    return list(parts.values())


def _settings(name: str) -> list[str]:
    """Return the options to try: the defaults (an empty text), then each choice of each option."""
    options = describe(get(name).Options)
    return ["", *(f"{option['name']}={choice}" for option in options for choice in option["choices"])]


def _built(name: str, setting: str, stack: StackShape) -> PositionEncoding | None:
    try:
        return build(spec_of(name), setting, stack).members[name]
    except ValueError:
        return None
