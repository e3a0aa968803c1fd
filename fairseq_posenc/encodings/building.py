"""Build the encoding of a stack from --pos-enc and --pos-enc-args."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from itertools import combinations
from typing import Any

from ..core import options as opts
from ..core.base import PositionEncoding, StackShape
from ..core.compose import Composition
from ..core.refusal import InputError
from ..core.words import suggestion
from .registry import ENCODINGS, kind_of

NAME_FLAG = "--pos-enc"  # in errors about a name that no stack of layers was built with


def names() -> list[str]:
    """Return all names for --pos-enc, in the order of the registry."""
    return list(ENCODINGS)


def specs() -> list[str]:
    """Return the value of --pos-enc that `spec_of` gives for each encoding, in the order of the registry."""
    return [spec_of(name) for name in names()]


def spec_of(name: str) -> str:
    """Return the shortest value of --pos-enc that contains an encoding.

    This is the encoding's name or, if the encoding cannot be used alone, two names such as `alibi+dape`.
    """
    companion = get(name).companion
    return f"{companion}+{name}" if companion else name


def get(name: str) -> type[PositionEncoding]:
    """Return the class of the encoding with the given name.

    Raises:
        ValueError: There is no encoding of this name. The message suggests the most similar name and lists all names.
    """
    return _class_of(name, NAME_FLAG)


def _class_of(name: str, flag: str) -> type[PositionEncoding]:
    if name not in ENCODINGS:
        hint = suggestion(name, ENCODINGS, titles=_titles())
        raise InputError(f"{flag}: unknown position encoding {name!r}{hint}; known names: {', '.join(ENCODINGS)}")
    return _class_at(ENCODINGS[name])


def _titles() -> dict[str, str]:
    """Return the name of each encoding by the parts of its title: `RoPE: rotary` gives RoPE and rotary."""
    names: dict[str, str] = {}
    for name, place in ENCODINGS.items():
        with suppress(ModuleNotFoundError):  # the folder of an exported model has the file of its own encoding only
            names |= dict.fromkeys(_class_at(place).facts.title.split(": "), name)
    return names


def form_of(cls: type[PositionEncoding], options: opts.Options) -> type[PositionEncoding]:
    """Return the class that implements an encoding with the given options (see `PositionEncoding.forms`)."""
    place = cls.forms.get(getattr(options, "form", ""))
    return _class_at(place) if place else cls


def _class_at(place: str) -> type[PositionEncoding]:
    module, _, attribute = place.partition(":")
    folder = __name__.removesuffix("building")  # in an exported model, files have names such as `encodings_rope.py`
    cls: type[PositionEncoding] = getattr(import_module(f"{folder}{module}"), attribute)
    return cls


def build(spec: str, args: str | Mapping[str, Any] | None, stack: StackShape) -> Composition:
    """Build the encoding of a stack, from --pos-enc and --pos-enc-args.

    Args:
        spec: A name, or several names joined by `+`, for example `learned+m4m`. If an encoding occurs twice, the second
            one gets a number, as in `rope+rope-2`.
        args: Options such as `clip=64,share=head-wise`. If several of the combined encodings have an option, write the
            encoding's name before the option: `m4m.clip=64`.
        stack: The stack of layers that the encoding is built for.

    Raises:
        TypeError: `spec` is not a text.
        ValueError: A name, option or value is unknown, or the encodings cannot be combined.
    """
    if not isinstance(spec, str):
        raise TypeError(
            f"{stack.name_flag} must be a name such as 'rope' ('none' means no positions), but it is {spec!r}"
        )
    classes = _classes(spec, stack.name_flag)
    values = _split(opts.parse(args, stack.args_flag), dict(classes), stack.args_flag)
    encodings = [(name, _build_encoding(name, cls, values[name], stack)) for name, cls in classes]
    _refuse_overlaps(dict(encodings), stack.name_flag)
    return Composition(encodings, stack)


def of_members(spec: str, args: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `args` with an encoding's name before each option (`m4m.clip`), so that more encodings can be added.

    Raises:
        ValueError: An encoding or option is unknown, or several of the encodings have the option.
    """
    split = _split(opts.parse(args), dict(_classes(spec)))
    return {f"{_prefix(name)}{key}": value for name, own in split.items() for key, value in own.items()}


def with_defaults(spec: str, args: str | Mapping[str, Any] | None, defaults: str | None) -> dict[str, Any]:
    """Return `args` plus the `defaults` (such as 'sinusoidal.freq=t2t') of the encodings that `spec` names.

    Raises:
        ValueError: The defaults name an unknown encoding or option.
    """
    options = opts.parse(args)
    members = [part.strip() for part in spec.split("+")]
    for key, value in opts.parse(defaults).items():
        owner, _, option = key.rpartition(".")
        kind = next((name for name in ENCODINGS if name.replace("-", "_") == owner), owner)
        opts.fill(get(kind).Options, {option: value})
        for member in members:
            if kind_of(member) == kind and option not in options:
                options.setdefault(f"{_prefix(member)}{option}", value)
    return options


def _classes(spec: str, flag: str = NAME_FLAG) -> list[tuple[str, type[PositionEncoding]]]:
    """Return the members of a composition with their classes.

    Raises:
        ValueError: An encoding is unknown, or the number in a name such as `rope-2` is wrong.
    """
    members = [part.strip() for part in spec.split("+")]
    kinds = [kind_of(member) for member in members]
    for number, (member, kind) in enumerate(zip(members, kinds, strict=True)):
        before = kinds[:number].count(kind)
        name = f"{kind}-{before + 1}" if before else kind
        if member not in (kind, name):
            raise InputError(f"{flag} {spec}: {member} must be called {name}, because it is {kind} number {before + 1}")
    return [(member, _class_of(kind, flag)) for member, kind in zip(members, kinds, strict=True)]


def _build_encoding(
    name: str, cls: type[PositionEncoding], values: Mapping[str, Any], stack: StackShape
) -> PositionEncoding:
    try:
        options = opts.fill(cls.Options, values)
        encoding = form_of(cls, options)(options, stack)
        _refuse_unlayered(encoding)
    except InputError as error:
        raise InputError(f"{stack.args_flag}: {name}: {error}") from None
    return encoding


def _refuse_unlayered(encoding: PositionEncoding) -> None:
    """Raise ValueError if the option `layers` is set, but the encoding acts at the input only or does nothing."""
    layers, hooks = encoding.options.layers, encoding.hooks
    if layers is None or (hooks and "embed" not in hooks):
        return
    reason = "this encoding adds vectors at the input, before all layers" if hooks else "this encoding does nothing"
    raise InputError(f"layers={layers} has no effect, because {reason}. Leave the option layers out.")


def _refuse_overlaps(members: Mapping[str, PositionEncoding], flag: str) -> None:
    """Raise ValueError if two members of the same kind, such as `rope` and `rope-2`, are active in the same layer."""
    for (first, one), (second, other) in combinations(members.items(), 2):
        both = sorted(set(one.layer_numbers) & set(other.layer_numbers))
        if kind_of(first) == kind_of(second) and both:
            cure = f"set {_prefix(first)}layers and {_prefix(second)}layers to different layers"
            if "embed" in one.hooks:
                raise InputError(f"{flag}: {first} and {second} both add vectors at the input; use only one of them")
            raise InputError(f"{flag}: {first} and {second} are both active in layer {both[0]}; {cure}")


def _split(
    values: Mapping[str, Any], classes: Mapping[str, type[PositionEncoding]], flag: str = opts.FLAG
) -> dict[str, dict[str, Any]]:
    """Return the options of each encoding by the encoding's name; errors name the setting `flag`."""
    split: dict[str, dict[str, Any]] = {name: {} for name in classes}
    for key, value in values.items():
        owner, dot, option = key.rpartition(".")
        owners = _owners(owner, classes) if dot else [n for n, c in classes.items() if option in opts.names(c.Options)]
        if not owners:
            known = "; ".join(f"{n}: {', '.join(opts.names(c.Options)) or 'none'}" for n, c in classes.items())
            hint = suggestion(option, [name for c in classes.values() for name in opts.names(c.Options)])
            raise InputError(f"{flag}: there is no option {key}{hint}; known options: {known}")
        if len(owners) > 1:
            choices = " or ".join(f"{name}.{option}" for name in owners)
            raise InputError(f"{flag}: several encodings have the option {option}; write {choices}")
        if option in split[owners[0]]:
            raise InputError(f"{flag} sets the option {option} of {owners[0]} twice; remove one of them")
        split[owners[0]][option] = value
    return split


def _prefix(member: str) -> str:
    """Return the prefix of the options of a member of a composition, for example `diet_rel.` for `diet-rel`."""
    return f"{member.replace('-', '_')}."


def _owners(owner: str, classes: Mapping[str, type[PositionEncoding]]) -> list[str]:
    return [name for name in classes if name.replace("-", "_") == owner]
