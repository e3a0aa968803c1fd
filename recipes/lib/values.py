"""Read the values of settings from the command line, and check them against the declared types."""

from __future__ import annotations

import re
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

Flags = dict[str, str | int | float | bool]  # options of another program, which refuses unknown options itself
OUTER_COMMA = re.compile(r",(?![^\[]*\])")  # a comma outside of brackets, such as the second in `shaw[a=8,b=1],rope`
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


class Refused(Exception):
    """Report that a recipe cannot do what the user asks for; the message says why and what to do."""


def is_table(hint: Any) -> bool:
    """Return whether the type of a setting is a table."""
    origin: Any = get_origin(hint)
    return origin is dict


def read(text: str, hint: Any) -> object:
    """Convert a word of the command line to the type `hint`, and return the value.

    Raises:
        ValueError: The word cannot be converted to the type.
    """
    if get_origin(hint) is list:
        return [read(part, get_args(hint)[0]) for part in OUTER_COMMA.split(text) if part]
    if get_origin(hint) is Literal:
        return next((choice for choice in get_args(hint) if str(choice) == text), text)
    if get_origin(hint) in (Union, UnionType):
        return _first([kind for kind in (bool, int, float, str) if kind in get_args(hint)], text)
    if hint is bool:
        return {"true": True, "false": False}.get(text, text)
    return hint(text)


def _first(hints: list[Any], text: str) -> object:
    for hint in hints:
        try:
            value = read(text, hint)
        except ValueError:
            continue
        if fits(value, hint):
            return value
    return text


def fits(value: object, hint: Any) -> bool:
    """Return whether a value has the declared type."""
    arguments = get_args(hint)
    if get_origin(hint) is list:
        return isinstance(value, list) and all(fits(item, arguments[0]) for item in value)
    if is_table(hint):
        return isinstance(value, dict) and all(fits(item, arguments[1]) for item in value.values())
    if get_origin(hint) is Literal:
        return value in arguments
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, kind) for kind in arguments)
    if hint in (int, float):  # for Python a bool is an int, for settings it is not
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, hint)


def expected(hint: Any) -> str:
    """Describe a type in words, such as `a whole number`."""
    if get_origin(hint) is list:
        return f"a list; each item must be {expected(get_args(hint)[0])}"
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(WORDS.get(kind, str(kind)) for kind in get_args(hint) if kind is not type(None))
    return WORDS.get(hint, "a table")
