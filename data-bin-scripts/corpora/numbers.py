"""Whole numbers of a command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option."""

    def number(word: str) -> int:  # argparse names it: invalid number value
        if int(word) < least:
            raise argparse.ArgumentTypeError(f"{word}: at least {least} is wanted")
        return int(word)

    return number
