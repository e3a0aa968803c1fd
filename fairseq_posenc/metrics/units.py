"""What a text is compared by: words, characters, or what spaces part."""

from __future__ import annotations

import re

#: words and single marks; every character but spaces (Chinese); what spaces part (text that is tokenised already)
UNITS = {"words": re.compile(r"\w+|[^\w\s]"), "characters": re.compile(r"\S"), "spaces": re.compile(r"\S+")}


def pattern_of(units: str) -> re.Pattern[str]:
    """Raises ValueError for units that are not in `UNITS`."""
    if units not in UNITS:
        raise ValueError(f"no units {units!r}; there are: {', '.join(UNITS)}")
    return UNITS[units]


def units_of(text: str, units: str = "words") -> list[str]:
    """The text's units, in lower case.

    Raises:
        ValueError: units that are not in `UNITS`.
    """
    return pattern_of(units).findall(text.lower())
