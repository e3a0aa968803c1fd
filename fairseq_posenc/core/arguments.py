"""Parse command lines with argparse, whose errors do not suggest the flag or the value that a user may have meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection
from typing import Any, NoReturn

from .words import suggestion

#: How argparse refuses a value; the names of the list have quotes in some versions of Python.
_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")
_UNKNOWN = "unrecognized arguments: "


class Parser(argparse.ArgumentParser):
    """Parse a command line; an error suggests the most similar flag, command or value.

    Help texts keep their line breaks.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, **settings})

    def error(self, message: str) -> NoReturn:
        known = [option for action in self._actions for option in action.option_strings]
        hints = (suggestion(flag.lstrip("-"), [name.lstrip("-") for name in known], "--") for flag in unknown(message))
        super().error(with_choice(message) + next(filter(None, hints), ""))


def unknown(message: str) -> Collection[str]:
    """Return the unknown flags in an error message of argparse."""
    words = message.partition(_UNKNOWN)[2].split()
    return dict.fromkeys(word.partition("=")[0] for word in words if word.startswith("--"))


def with_choice(message: str) -> str:
    """Return an error message of argparse in which the most similar value, if any, stands instead of all values."""
    match = _CHOICE.search(message)
    hint = suggestion(match[1], [name.strip("'") for name in match[2].split(", ")]) if match else ""
    return _CHOICE.sub(lambda found: f"invalid choice: '{found[1]}'{hint}", message) if hint else message
