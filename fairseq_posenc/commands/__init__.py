"""Hold the commands of `python -m fairseq_posenc`, one in each file."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def bounded(least: float, most: float = float("inf"), *, whole: bool = True) -> Callable[[str], float]:
    """Return a function for argparse that parses a number and refuses values outside of `least` to `most`."""

    def parsed(text: str) -> float:
        value = int(text) if whole else float(text)
        if not least <= value <= most:
            limit = f"at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"
            raise argparse.ArgumentTypeError(f"{text} is out of range: the number must be {limit}")
        return value

    parsed.__name__ = "whole number" if whole else "number"  # argparse names it in its error
    return parsed
