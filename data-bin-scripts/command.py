"""What the command lines of all data scripts share: parsers, types of options, settings, and how a program ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from corpora.errors import CorpusError

#: What a program says after Ctrl-C if it keeps what it has done.
GOES_ON = "interrupted; run it again to go on from here"
Kind = TypeVar("Kind")
Number = TypeVar("Number", int, float)


def parser(program: str, description: str, examples: str, **more: Any) -> argparse.ArgumentParser:
    """Return a parser whose help shows the description and the examples as they are written."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=program, description=description, epilog=examples, formatter_class=form, **more)


def number(kind: Callable[[str], Number], fits: Callable[[Number], bool], wanted: str) -> Callable[[str], Number]:
    """Return the type of an option whose values are numbers that fit; `wanted` describes them in errors."""

    def number(word: str) -> Number:  # argparse shows this name: invalid number value
        value = kind(word)
        if not fits(value):
            raise argparse.ArgumentTypeError(f"{word}: {wanted} is wanted")
        return value

    return number


def at_least(least: int) -> Callable[[str], int]:
    """Return the type of an option that takes whole numbers from `least` on."""
    return number(int, lambda value: value >= least, f"at least {least}")


def settings(kind: type[Kind], asked: argparse.Namespace, **more: Any) -> Kind:
    """Return a data class whose fields are the options of the same names, and `more`."""
    names = {field.name for field in fields(kind)} & vars(asked).keys()  # type: ignore[arg-type]
    return kind(**{name: getattr(asked, name) for name in names} | more)


def exit_status(work: Callable[[], Path | None], interrupted: str = "interrupted") -> int:
    """Run a program, print what is wrong, and return 0, 1 after an error, or 130 after Ctrl-C.

    Args:
        work: Returns the folder that exists now, or None if it only looked.
        interrupted: What Ctrl-C means for what is done so far.
    """
    try:
        folder = work()
    except (CorpusError, OSError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print(interrupted, file=sys.stderr)
        return 130
    if folder is not None:
        print(f"{folder} is there", flush=True)
    return 0
