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


class Once(argparse._StoreAction):
    """Store a value; if the option is repeated, refuse it, because the first value would have no effect."""

    def __call__(self, parser: argparse.ArgumentParser, *arguments: Any) -> None:
        (*_, option) = arguments
        if option and isinstance(parser, Parser):
            if self.dest in parser.given:
                parser.error(f"{option} is given twice, but takes one value. Give it only once.")
            parser.given.add(self.dest)
        super().__call__(parser, *arguments)


class Parser(argparse.ArgumentParser):
    """Parse a command line; an error suggests the most similar flag, command or value.

    Help texts keep their line breaks. An option that takes one value is refused if it is repeated.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": argparse.RawDescriptionHelpFormatter, **settings})
        self.given: set[str] = set()  # options of the command line that is parsed
        self.register("action", None, Once)
        self.register("action", "store", Once)

    def parse_known_args(self, *arguments: Any, **more: Any) -> Any:
        self.given.clear()
        return super().parse_known_args(*arguments, **more)

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
