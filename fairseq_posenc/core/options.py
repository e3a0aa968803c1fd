"""Define the options of encodings: dataclasses that are filled with the values that `syntax.py` parses.

Unknown names and wrong values raise errors; no value is ignored.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from . import schedule
from .refusal import InputError
from .syntax import option_name
from .words import suggestion

#: Bound of options that may not exceed the stack's maximum length. The encoding checks this bound, because it knows the
#: stack.
N = "n"
_KIND_NAMES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}


def option(
    default: Any,
    help: str,
    *,
    choices: tuple[str, ...] | None = None,
    between: tuple[float, float | str] | None = None,
    example: Any = None,
    elsewhere: Mapping[str, str] | None = None,
) -> Any:
    """Return a dataclass field that describes an option.

    Args:
        default: Value of the option if the user does not set it.
        help: Text that explains the option, for the command `list` and the documentation.
        choices: Allowed values, if the option is a word.
        between: Smallest and largest allowed value, if the option is a number. These bounds keep tables small enough to
            be allocated, and results finite.
        example: A value other than the default, for tests and docs; if unset, one of `choices`.
        elsewhere: Names of other libraries for some of the `choices`; an error suggests the choice for such a name.
    """
    if example is None and choices:
        example = next(choice for choice in choices if choice != default)
    meta = {"help": help, "choices": choices, "between": between, "example": example, "elsewhere": elsewhere}
    return dataclasses.field(default=default, metadata=meta)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Provide the base class of every encoding's options. This class defines the options of all encodings."""

    layers: str | None = option(None, schedule.HELP, example="2")
    window: int | None = option(None, schedule.WINDOW_HELP, between=(1, 10_000_000), example=4)

    def __post_init__(self) -> None:
        """Raise ValueError if a number is outside of the range of its option."""
        for field in dataclasses.fields(self):
            value, between = getattr(self, field.name), field.metadata.get("between")
            if value is None or between is None or between[1] == N:
                continue
            low, high = between
            if not low <= value <= high:
                raise InputError(f"{written(field)}={_show(value)} must be from {written_range(field)}")

    def __str__(self) -> str:
        """Return the options as the user writes them. Leave out unset options that every encoding has."""
        common = [field for field in dataclasses.fields(Options) if getattr(self, field.name) is not None]
        return ",".join(f"{written(f)}={_show(getattr(self, f.name))}" for f in [*own_fields(type(self)), *common])


def own_fields(cls: type[Options]) -> list[dataclasses.Field[Any]]:
    """Return the fields of an encoding's options, except the options that all encodings have."""
    common = {field.name for field in dataclasses.fields(Options)}
    return [field for field in dataclasses.fields(cls) if field.name not in common]


def written(field: dataclasses.Field[Any]) -> str:
    """Return the name of an option as the user writes it: the field `lambda_` is the option `lambda`, for example."""
    return field.name.removesuffix("_")


def written_range(field: dataclasses.Field[Any]) -> str:
    """Return the smallest and the largest value of an option, such as `1 to n`, or an empty text if it has no range."""
    between = field.metadata.get("between")
    return "" if between is None else " to ".join(b if isinstance(b, str) else f"{b:.10g}" for b in between)


def names(cls: type[Options]) -> list[str]:
    """Return the option names of an encoding; the options that are common to all encodings come last."""
    return [written(field) for field in [*own_fields(cls), *dataclasses.fields(Options)]]


def fill(cls: type[Options], values: Mapping[str, Any]) -> Options:
    """Return the options of an encoding from parsed values.

    Raises:
        ValueError: A name is unknown (the error lists the known names), or a value has the wrong type.
    """
    unknown = sorted(set(values) - set(names(cls)))
    if unknown:
        hint, known = suggestion(unknown[0], names(cls)), ", ".join(names(cls)) or "none"
        raise InputError(f"there is no option {', '.join(unknown)}{hint}; known options: {known}")
    hints = typing.get_type_hints(cls)
    fields = {written(field): field for field in dataclasses.fields(cls)}
    chosen = ((fields[name], value) for name, value in values.items())
    return cls(**{field.name: _convert(value, hints[field.name], field) for field, value in chosen})


def describe(cls: type[Options]) -> list[dict[str, Any]]:
    """Return a row for each option of an encoding, with its name, default, choices, range and help text.

    The options that all encodings have are left out; `describe_common` returns them.
    """
    return [_row(field) for field in own_fields(cls)]


def describe_common() -> list[dict[str, Any]]:
    """Return the row of each option that all encodings have; see `describe`."""
    return [_row(field) for field in dataclasses.fields(Options)]


def _row(field: dataclasses.Field[Any]) -> dict[str, Any]:
    return {
        "name": written(field),
        "default": field.default,
        "choices": list(field.metadata["choices"] or []),
        "range": written_range(field),
        "help": field.metadata["help"],
    }


def _show(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _convert(value: Any, hint: Any, field: dataclasses.Field[Any]) -> Any:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if type(None) in kinds and str(value).lower() in ("none", "unset"):
        return None
    kind = next(kind for kind in kinds if kind is not type(None))
    try:
        converted = {bool: _bool, int: _whole, float: _finite}.get(kind, kind)(value)
    except (ValueError, TypeError, OverflowError):  # float() refuses whole numbers of more than 308 digits
        kind_name = _KIND_NAMES[kind]
        raise InputError(f"{written(field)}={value} must be {kind_name}") from None
    choices = field.metadata["choices"]
    if not choices:
        return converted
    for choice in choices:
        if option_name(choice) == option_name(str(converted)):
            return choice
    ours = (field.metadata["elsewhere"] or {}).get(str(value).lower())
    hint = f"; did you mean {ours}?" if ours else suggestion(str(value), choices)
    raise InputError(f"{written(field)}={value} must be one of {', '.join(choices)}{hint}")


def _bool(value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if str(value).lower() not in words:
        raise ValueError(value)
    return words[str(value).lower()]


def _whole(value: Any) -> int:
    if isinstance(value, bool) or _finite(value) != int(float(value)):
        raise ValueError(value)
    return int(float(value))


def _finite(value: Any) -> float:
    if not math.isfinite(float(value)):
        raise ValueError(value)
    return float(value)
