"""From --pos-enc and --pos-enc-args to the encoding of a stack."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ..core import options as opts
from ..core.base import PositionEncoding, StackShape
from ..core.compose import Composition
from ..core.words import suggestion
from .registry import ENCODINGS


def names() -> list[str]:
    """Return all names that --pos-enc takes, in the order of the registry."""
    return list(ENCODINGS)


def get(name: str) -> type[PositionEncoding]:
    """Return the class of an encoding.

    Raises:
        ValueError: an unknown name; the known ones are listed, the nearest first.
    """
    if name not in ENCODINGS:
        hint = suggestion(name, ENCODINGS)
        raise ValueError(f"--pos-enc: unknown position encoding {name!r}{hint}; known: {', '.join(ENCODINGS)}")
    return _class_at(ENCODINGS[name])


def form_of(cls: type[PositionEncoding], options: opts.Options) -> type[PositionEncoding]:
    """Return the class that serves these options: see `PositionEncoding.forms`."""
    place = cls.forms.get(getattr(options, "form", ""))
    return _class_at(place) if place else cls


def _class_at(place: str) -> type[PositionEncoding]:
    module, _, attribute = place.partition(":")
    cls: type[PositionEncoding] = getattr(import_module(f".{module}", __package__), attribute)
    return cls


def build(spec: str, args: str | Mapping[str, Any] | None, stack: StackShape) -> Composition:
    """Build the encoding of a stack, from --pos-enc and --pos-enc-args.

    Args:
        spec: a name, or several joined by `+`: `learned+m4m`.
        args: `clip=64,share=head-wise`; in a composition an option of several members is `m4m.clip=64`.
        stack: the stack that it serves.

    Raises:
        ValueError: unknown names, options or values, and combinations that cannot be.
    """
    members = [part.strip() for part in spec.split("+")]
    classes = {name: get(name) for name in members}
    given = _split(opts.parse(args), classes)
    built = [(name, _build_one(name, classes[name], given[name], stack)) for name in members]
    return Composition(built, stack)


def of_members(spec: str, args: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `args` by the members that they are for, as `m4m.clip`: what they mean beside further members too.

    Raises:
        ValueError: an unknown encoding or option, or one of several members.
    """
    split = _split(opts.parse(args), {name: get(name) for name in (part.strip() for part in spec.split("+"))})
    return {f"{name.replace('-', '_')}.{key}": value for name, own in split.items() for key, value in own.items()}


def with_defaults(spec: str, args: str | Mapping[str, Any] | None, defaults: str | None) -> dict[str, Any]:
    """Return `args`, and what only `defaults` ('sinusoidal.freq=t2t') say of the members of `spec`.

    Raises:
        ValueError: defaults of an unknown encoding or option.
    """
    given = opts.parse(args)
    members = {part.strip().replace("-", "_") for part in spec.split("+")}
    for key, value in opts.parse(defaults).items():
        owner, _, option = key.rpartition(".")
        cls = get(next((name for name in ENCODINGS if name.replace("-", "_") == owner), owner))
        opts.fill(cls.Options, {option: value})
        if owner in members and option not in given:
            given.setdefault(key, value)
    return given


def _build_one(name: str, cls: type[PositionEncoding], given: Mapping[str, Any], stack: StackShape) -> PositionEncoding:
    try:
        options = opts.fill(cls.Options, given)
        return form_of(cls, options)(options, stack)
    except ValueError as error:
        raise ValueError(f"{stack.args_flag}: {name}: {error}") from None


def _split(given: Mapping[str, Any], classes: Mapping[str, type[PositionEncoding]]) -> dict[str, dict[str, Any]]:
    """Return the options of each member."""
    split: dict[str, dict[str, Any]] = {name: {} for name in classes}
    for key, value in given.items():
        owner, dot, option = key.rpartition(".")
        owners = _owners(owner, classes) if dot else [n for n, c in classes.items() if option in opts.names(c.Options)]
        if not owners:
            known = "; ".join(f"{n}: {', '.join(opts.names(c.Options)) or 'none'}" for n, c in classes.items())
            hint = suggestion(option, [name for c in classes.values() for name in opts.names(c.Options)])
            raise ValueError(f"--pos-enc-args: no option {key} here{hint}; known options: {known}")
        if len(owners) > 1:
            choices = " or ".join(f"{name}.{option}" for name in owners)
            raise ValueError(f"--pos-enc-args: {option} belongs to several encodings; write {choices}")
        if option in split[owners[0]]:
            raise ValueError(f"--pos-enc-args gives {option} of {owners[0]} twice")
        split[owners[0]][option] = value
    return split


def _owners(owner: str, classes: Mapping[str, type[PositionEncoding]]) -> list[str]:
    return [name for name in classes if name.replace("-", "_") == owner]
