"""Provide the parsers, option types, settings and exit codes that all data scripts share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from shared import NotTextError, RefusedError, colon_problem, visible

#: Message after Ctrl-C if the program keeps its finished work.
RESUME = "interrupted; run the same command again to continue"
Number = TypeVar("Number", int, float)


def parser(program: str, description: str, examples: str, **more: Any) -> argparse.ArgumentParser:
    """Return a parser whose help prints the description and the examples without reformatting them."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=program, description=description, epilog=examples, formatter_class=form, **more)


def number(kind: Callable[[str], Number], fits: Callable[[Number], bool], allowed: str) -> Callable[[str], Number]:
    """Return an option type for numbers that satisfy `fits`; `allowed` describes these numbers in error messages."""

    def number(word: str) -> Number:  # argparse shows this name: invalid number value
        value = kind(word)
        if not fits(value):
            raise argparse.ArgumentTypeError(f"{word} is not allowed. Give {allowed}.")
        return value

    return number


def at_least(least: int) -> Callable[[str], int]:
    """Return an option type for integers of at least `least`."""
    return number(int, lambda value: value >= least, f"at least {least}")


def data_folder(word: str) -> Path:
    """Return the path of a folder of binarised data: an option type that refuses paths that fairseq would split."""
    if problem := colon_problem(word):
        raise argparse.ArgumentTypeError(f"{word}: {problem}")
    return Path(word)


def exit_status(work: Callable[[], Path | None], interrupted: str = "interrupted") -> int:
    """Run a program and print its error; return 0 after success, 1 after an error, or 130 after Ctrl-C.

    Args:
        work: Function that does the work, and returns the folder that it wrote (None: no folder).
        interrupted: Message after Ctrl-C.
    """
    try:
        folder = work()
    except (RefusedError, NotTextError, OSError) as error:
        print(f"error: {visible(error)}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print(interrupted, file=sys.stderr)
        return 130
    if folder is not None:
        print(f"{folder} is complete", flush=True)
    return 0
