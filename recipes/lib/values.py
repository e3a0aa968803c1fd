"""Values of settings: read from the command line, checked against the type that the setting declares."""

from __future__ import annotations

import re
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

Flags = dict[str, str | int | float | bool]  # options for another program, which knows them and refuses others
OUTER_COMMA = re.compile(r",(?![^\[]*\])")  # `shaw[clip=8,share=none],rope` has one
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


class Refused(Exception):
    """Something the user asked for that is not there; the message names it and what is."""


def is_table(hint: Any) -> bool:
    origin: Any = get_origin(hint)
    return origin is dict


def read(text: str, hint: Any) -> object:
    """A word of the command line as `hint`; ValueError where it is none."""
    if get_origin(hint) is list:
        return [read(part, get_args(hint)[0]) for part in OUTER_COMMA.split(text) if part]
    if get_origin(hint) is Literal:
        return next((choice for choice in get_args(hint) if str(choice) == text), text)
    if get_origin(hint) in (Union, UnionType):
        return _first([one for one in (bool, int, float, str) if one in get_args(hint)], text)
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
    arguments = get_args(hint)
    if get_origin(hint) is list:
        return isinstance(value, list) and all(fits(one, arguments[0]) for one in value)
    if is_table(hint):
        return isinstance(value, dict) and all(fits(one, arguments[1]) for one in value.values())
    if get_origin(hint) is Literal:
        return value in arguments
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, one) for one in arguments)
    if hint in (int, float):  # a bool is an int to Python only
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, hint)


def wanted(hint: Any) -> str:
    if get_origin(hint) is list:
        return f"a list of {wanted(get_args(hint)[0])}"
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(WORDS.get(one, str(one)) for one in get_args(hint) if one is not type(None))
    return WORDS.get(hint, "a table")
