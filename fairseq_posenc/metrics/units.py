"""Define the units by which texts are compared: words, characters, or tokens separated by spaces."""

from __future__ import annotations

import re

from ..core.refusal import InputError

#: words and single punctuation marks; every character except spaces (Chinese); tokens between spaces (tokenised text)
UNITS = {"words": re.compile(r"\w+|[^\w\s]"), "characters": re.compile(r"\S"), "spaces": re.compile(r"\S+")}


def pattern_of(units: str) -> re.Pattern[str]:
    """Return the regular expression that matches one unit of text, such as a word.

    Raises:
        ValueError: The units are not in `UNITS`.
    """
    if units not in UNITS:
        raise InputError(f"units {units!r} are unknown. Choose from {', '.join(UNITS)}.")
    return UNITS[units]


def units_of(text: str, units: str = "words") -> list[str]:
    """Return the units of a text, in lower case.

    Raises:
        ValueError: The units are not in `UNITS`.
    """
    return pattern_of(units).findall(text.lower())
