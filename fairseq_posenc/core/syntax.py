"""Parse encodings with their options, as every command and recipe takes them: `m4[clip=64]` or `shaw[clip=16]+t5`.

Brackets hold options of the encoding before them. An option that this encoding lacks belongs to the other encoding of
the composition that has it. With the name of an encoding before it, as in `m4.clip=64`, an option always belongs to
that encoding. Options may also be given apart from the encoding, as --pos-enc-args gives them.

This file needs nothing but Python, so that recipes load it without torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .refusal import InputError
from .words import suggestion

NAME_FLAG, ARGS_FLAG = "--pos-enc", "--pos-enc-args"  # settings that errors name, unless the caller names others
#: An encoding and its brackets, up to the next `+` or the end. A `+` within brackets may belong to a number.
_ENCODING = re.compile(r"([^\[\]+]*)(?:\[([^\[\]]+)\]\s*)?(?:\+|$)")

Args = str | Mapping[str, Any] | None
#: A function that returns the names of an encoding's options, and raises InputError if there is no such encoding.
OptionNames = Callable[[str], Collection[str]]


@dataclass(frozen=True)
class Spec:
    """Hold the encodings of a stack in the order in which they are written, and the options of each.

    Args:
        names: Names of the encodings, such as `rope` and `rope-2`.
        known: Names of the options that each encoding has.
        options: Values of the options that are set, by encoding and option.
        flags: Settings that set options, by encoding and option; error messages name them.
    """

    names: list[str]
    known: Mapping[str, Collection[str]]
    options: dict[str, dict[str, Any]]
    flags: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the encodings without their options, as --pos-enc takes them."""
        return "+".join(self.names)

    @property
    def args(self) -> str | None:
        """Return the options as --pos-enc-args takes them; None if no option is set.

        The name of an encoding stands only before options that several of the encodings have.
        """
        texts = (
            (prefix(name) if len(_having(option, self.known)) > 1 else "") + _pair(option, value)
            for name, options in self.options.items()
            for option, value in options.items()
        )
        return ",".join(texts) or None

    @property
    def label(self) -> str:
        """Return the encodings with their options, such as `shaw[clip=16]+t5`."""
        texts = {name: ",".join(_pair(*pair) for pair in options.items()) for name, options in self.options.items()}
        return "+".join(f"{name}[{texts[name]}]" if texts[name] else name for name in self.names)

    def by_owner(self) -> dict[str, Any]:
        """Return the options with the name of an encoding before each, such as `m4.clip`."""
        return {prefix(name) + key: value for name, options in self.options.items() for key, value in options.items()}

    def flag_of(self, name: str) -> str:
        """Return the settings that set options of an encoding, such as `--pos-enc`; an empty text if none does."""
        return " and ".join(dict.fromkeys(self.flags.get(name, {}).values()))

    def set(self, name: str, option: str, value: Any, flag: str) -> None:
        """Set an option of an encoding.

        Raises:
            ValueError: The option has a value already; the message names the settings that set it.
        """
        flags = self.flags.setdefault(name, {})
        if flags.get(option) == flag:
            raise InputError(f"{flag} sets the option {option} of {name} twice; remove one of them")
        if option in flags:
            raise InputError(f"{flags[option]} and {flag} both set the option {option} of {name}; remove one of them")
        self.options[name][option], flags[option] = value, flag


def parse_spec(
    text: str, args: Args, options_of: OptionNames, name_flag: str = NAME_FLAG, args_flag: str = ARGS_FLAG
) -> Spec:
    """Return the encodings that a text such as `shaw[clip=16]+t5` names, with their options.

    Args:
        text: Value of --pos-enc.
        args: Value of --pos-enc-args, or options by name.
        options_of: Function that returns the names of an encoding's options.
        name_flag: Setting that has the value `text`; error messages name it.
        args_flag: Setting that has the value `args`; error messages name it.

    Raises:
        ValueError: The text has another form, an encoding or an option is unknown, or an option is set twice.
    """
    groups = _groups(text, name_flag)
    names = [name for name, _ in groups]
    known = {name: options_of(name) for name in names}
    spec = Spec(names, known, {name: {} for name in names})
    for name, options in groups:
        for key, value in parse_options(options, name_flag).items():
            owner = (name, key) if key in known[name] else _owner(key, known, name_flag)
            spec.set(*owner, value, name_flag)
    for key, value in parse_options(args, args_flag).items():
        spec.set(*_owner(key, known, args_flag), value, args_flag)
    return spec


def names_in(text: str, flag: str = NAME_FLAG) -> list[str]:
    """Return the names of the encodings in a text such as `shaw[clip=16]+t5`, without checking that they exist."""
    return [name for name, _ in _groups(text, flag)]


def parse_options(text: Args, flag: str = ARGS_FLAG) -> dict[str, Any]:
    """Turn `'clip=64,share=head-wise'` into {'clip': '64', 'share': 'head-wise'}, or copy a mapping.

    `-` in the name of an option is replaced by `_`. Errors name the setting `flag`.

    Raises:
        ValueError: The text is not a list of name=value, or a name appears twice.
    """
    if text is None:
        return {}
    values: dict[str, Any] = {}
    for key, value in text.items() if isinstance(text, Mapping) else _pairs(text, flag):
        if option_name(key) in values:
            raise InputError(f"{flag} contains {key.strip()!r} twice; remove one of them")
        values[option_name(key)] = value
    return values


def option_name(text: str) -> str:
    """Return the name of an option in its standard spelling: `lambda_` is the option `lambda`, for example."""
    return text.strip().replace("-", "_").removesuffix("_")


def prefix(name: str) -> str:
    """Return the text before the options of an encoding in a composition, for example `diet_rel.` for `diet-rel`."""
    return f"{name.replace('-', '_')}."


def _groups(text: str, flag: str) -> list[tuple[str, str | None]]:
    """Return the name of each encoding and the options in its brackets, or None if it has no brackets."""
    groups, place = [], 0
    while (match := _ENCODING.match(text, place)) and (match[1].strip() or not match[2]):
        groups.append((match[1].strip(), match[2]))
        if not match[0].endswith("+"):
            return groups
        place = match.end()
    raise InputError(
        f"{flag}: {text!r} is not an encoding. Write NAME or 'NAME[OPTION=VALUE,...]' in quotes, such as "
        "'m4[clip=64]'; join several with '+'"
    )


def _pairs(text: str, flag: str) -> Iterator[tuple[str, str]]:
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, sign, value = part.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise InputError(
                f"{flag}: {part!r} is not NAME=VALUE; write, for example, clip=64,share=all, and several "
                "values of one option with colons between them, such as layers=4:8:12"
            )
        yield key, value.strip()


def _owner(key: str, known: Mapping[str, Collection[str]], flag: str) -> tuple[str, str]:
    """Return the encoding that an option such as `clip` or `m4.clip` belongs to, and the option's name."""
    owner, dot, option = key.rpartition(".")
    owners = [name for name in _having(option, known) if not dot or prefix(name) == f"{owner}."]
    if not owners:
        hint = suggestion(option, [each for options in known.values() for each in options])
        listed = "; ".join(f"{name}: {', '.join(options) or 'none'}" for name, options in known.items())
        raise InputError(f"{flag}: there is no option {key}{hint}; known options: {listed}")
    if len(owners) > 1:
        choices = " or ".join(f"{name}.{option}" for name in owners)
        raise InputError(f"{flag}: several encodings have the option {option}; write {choices}")
    return owners[0], option


def _having(option: str, known: Mapping[str, Collection[str]]) -> list[str]:
    """Return the encodings that have an option."""
    return [name for name, options in known.items() if option in options]


def _pair(option: str, value: Any) -> str:
    return f"{option}={':'.join(map(str, value)) if isinstance(value, list | tuple) else value}"
