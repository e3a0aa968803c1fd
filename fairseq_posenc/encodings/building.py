"""Build the encoding of a stack from --pos-enc and --pos-enc-args."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from itertools import combinations
from typing import Any

from ..core import options as opts
from ..core import syntax
from ..core.base import PositionEncoding, StackShape
from ..core.compose import Composition
from ..core.refusal import InputError
from ..core.words import suggestion
from .registry import ENCODINGS, kind_of


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


def get(name: str, flag: str = syntax.NAME_FLAG) -> type[PositionEncoding]:
    """Return the class of the encoding with the given name.

    Raises:
        ValueError: There is no encoding of this name. The message names the setting `flag`, suggests the most similar
            name and lists all names.
    """
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
        spec: A name, or several names joined by `+`, for example `learned+m4m`. Brackets hold the options of an
            encoding, as in `shaw[clip=16]+t5`. If an encoding occurs twice, the second one gets a number, as in
            `rope+rope-2`.
        args: More options, such as `clip=64,share=head-wise`. If several of the combined encodings have an option,
            write the encoding's name before the option: `m4m.clip=64`.
        stack: The stack of layers that the encoding is built for.

    Raises:
        TypeError: `spec` is not a text.
        ValueError: A name, option or value is unknown, an option is set twice, or the encodings cannot be combined.
    """
    if not isinstance(spec, str):
        raise TypeError(
            f"{stack.name_flag} must be a name such as 'rope' ('none' means no positions), but it is {spec!r}"
        )
    chosen = parse(spec, args, stack.name_flag, stack.args_flag)
    classes = _classes(chosen.names, stack.name_flag)
    encodings = [(name, _build_encoding(name, cls, chosen, stack)) for name, cls in classes]
    _refuse_overlaps(dict(encodings), stack.name_flag)
    return Composition(encodings, stack)


def parse(
    spec: str, args: syntax.Args = None, name_flag: str = syntax.NAME_FLAG, args_flag: str = syntax.ARGS_FLAG
) -> syntax.Spec:
    """Return the encodings and options that --pos-enc and --pos-enc-args name; see `syntax.parse_spec`.

    Raises:
        ValueError: An encoding or option is unknown, or an option is set twice.
    """

    def options_of(name: str) -> list[str]:
        return opts.names(get(kind_of(name), name_flag).Options)

    return syntax.parse_spec(spec, args, options_of, name_flag, args_flag)


def spelled_out(
    spec: str, args: str | None, name_flag: str = syntax.NAME_FLAG, args_flag: str = syntax.ARGS_FLAG
) -> tuple[str, str | None]:
    """Return an encoding without brackets, and the options of its brackets together with `args`.

    Settings of models and checkpoints store this form, so that both spellings of an option give the same settings.

    Raises:
        ValueError: An encoding or option is unknown, or an option is set twice.
    """
    if "[" not in spec and "]" not in spec:
        return spec, args
    chosen = parse(spec, args, name_flag, args_flag)
    return chosen.name, chosen.args


def with_defaults(
    spec: str,
    args: syntax.Args,
    defaults: str | None,
    name_flag: str = syntax.NAME_FLAG,
    args_flag: str = syntax.ARGS_FLAG,
) -> dict[str, Any]:
    """Return `args` plus the `defaults` (such as 'sinusoidal.freq=t2t') of the encodings that `spec` names.

    Raises:
        ValueError: An encoding or option is unknown, or an option is set twice.
    """
    options, chosen = syntax.parse_options(args, args_flag), parse(spec, args, name_flag, args_flag)
    for key, value in syntax.parse_options(defaults, "--pos-enc-defaults").items():
        owner, _, option = key.rpartition(".")
        kind = next((name for name in ENCODINGS if name.replace("-", "_") == owner), owner)
        opts.fill(get(kind, "--pos-enc-defaults").Options, {option: value})
        unset = [name for name in chosen.names if kind_of(name) == kind and option not in chosen.options[name]]
        options |= {f"{syntax.prefix(name)}{option}": value for name in unset}
    return options


def _classes(members: list[str], flag: str) -> list[tuple[str, type[PositionEncoding]]]:
    """Return the members of a composition with their classes.

    Raises:
        ValueError: An encoding is unknown, or the number in a name such as `rope-2` is wrong.
    """
    kinds = [kind_of(member) for member in members]
    for number, (member, kind) in enumerate(zip(members, kinds, strict=True)):
        before = kinds[:number].count(kind)
        name = f"{kind}-{before + 1}" if before else kind
        if member not in (kind, name):
            spec = "+".join(members)
            raise InputError(f"{flag} {spec}: {member} must be called {name}, because it is {kind} number {before + 1}")
    return [(member, get(kind, flag)) for member, kind in zip(members, kinds, strict=True)]


def _build_encoding(name: str, cls: type[PositionEncoding], chosen: syntax.Spec, stack: StackShape) -> PositionEncoding:
    try:
        options = opts.fill(cls.Options, chosen.options[name])
        encoding = form_of(cls, options)(options, stack)
        _refuse_unlayered(encoding)
        _refuse_window(encoding, stack)
    except InputError as error:
        raise InputError(f"{chosen.flag_of(name) or stack.args_flag}: {name}: {error}") from None
    return encoding


def _refuse_unlayered(encoding: PositionEncoding) -> None:
    """Raise ValueError if the option `layers` is set, but the encoding acts at the input only or does nothing.

    With a window, an encoding that does nothing else limits attention in its layers.
    """
    layers, hooks = encoding.options.layers, encoding.hooks
    if layers is None or (hooks and "embed" not in hooks) or (not hooks and encoding.options.window):
        return
    reason = "this encoding adds vectors at the input, before all layers" if hooks else "this encoding does nothing"
    raise InputError(f"layers={layers} has no effect, because {reason}. Leave the option layers out.")


def _refuse_window(encoding: PositionEncoding, stack: StackShape) -> None:
    """Raise ValueError if the option `window` would have no effect."""
    window = encoding.options.window
    if window is None:
        return
    if "embed" in encoding.hooks:
        raise InputError(
            f"window={window} limits attention in layers, but this encoding adds vectors at the input, before all "
            f"layers: write +none[window={window}] after the other encodings"
        )
    length, flag = stack.longest
    if (window if stack.causal else window // 2 + 1) >= length:
        raise InputError(
            f"window={window} has no effect, because the longest sequence has {length} tokens "
            f"({flag}): choose a smaller window, or leave it out"
        )


def _refuse_overlaps(members: Mapping[str, PositionEncoding], flag: str) -> None:
    """Raise ValueError if two members of the same kind, such as `rope` and `rope-2`, are active in the same layer."""
    for (first, one), (second, other) in combinations(members.items(), 2):
        both = sorted(set(one.layer_numbers) & set(other.layer_numbers))
        if kind_of(first) == kind_of(second) and both:
            cure = f"set {syntax.prefix(first)}layers and {syntax.prefix(second)}layers to different layers"
            if "embed" in one.hooks:
                raise InputError(f"{flag}: {first} and {second} both add vectors at the input; use only one of them")
            raise InputError(f"{flag}: {first} and {second} are both active in layer {both[0]}; {cure}")
