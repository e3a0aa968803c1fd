"""Name the file and the line of a dictionary that cannot be read; fairseq names at most one of them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.reading import read_utf8
from ..core.refusal import InputError
from .patching import replace


class DictionaryError(InputError):
    """Raised if a dictionary cannot be read; the message names the file and, if it is known, the line."""


def mend() -> None:
    """Explain why fairseq cannot read a dict.txt."""
    from fairseq.data import Dictionary

    replace(Dictionary, "add_from_file", _with_place)


def _with_place(original: Callable[..., None], dictionary: Any, file: Any) -> None:
    if not isinstance(file, str):  # fairseq calls this function again with the opened file
        return original(dictionary, file)
    try:
        return original(dictionary, file)
    except OSError:
        raise
    except Exception as error:
        lines = list(io.StringIO(read_utf8(Path(file)), newline=None))  # raises the error if the file is not UTF-8
        line = next((number for number, line in enumerate(lines, 1) if not _is_entry(line)), None)
        if line is None:  # a symbol that occurs twice
            raise DictionaryError(f"{file}: {error}") from error
        problem = f"the line {lines[line - 1].rstrip()!r} does not consist of a symbol, a space and a count"
        raise DictionaryError(f"{file}:{line}: {problem}. Use the dict.txt that was written with the data.") from error


def _is_entry(line: str) -> bool:
    words = line.rstrip().removesuffix(" #fairseq:overwrite").rsplit(" ", 1)
    try:
        return len(words) == 2 and int(words[1]) is not None
    except ValueError:
        return False
