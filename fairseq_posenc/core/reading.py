"""Read text files that the user gives, and check text and paths that fairseq would misread.

This file imports the standard library only: data scripts load it without the package, which needs torch.
"""

from __future__ import annotations

import os
from pathlib import Path

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class NotTextError(ValueError):
    """Report that a file is not UTF-8; the message names the file and the line."""


def read_utf8(path: Path) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        NotTextError: The file is not UTF-8.
    """
    content = path.read_bytes()
    if is_utf16(content):
        raise NotTextError(f"{path}:1: {utf16_problem(path)}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotTextError(f"{path}:{line}: {_not_utf8(content[error.start])}") from None


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file in UTF-8.

    Only a line feed ends a line, with or without a carriage return before it. `str.splitlines` and Python's text files
    also split lines at other characters, which would shift all lines that follow.

    Raises:
        NotTextError: The file is not UTF-8.
    """
    return [line.removesuffix("\r") for line in read_utf8(path).removesuffix("\n").split("\n")]


def decoded(line: bytes, path: Path | str, number: int) -> str:
    """Return a line of a file as text.

    Raises:
        NotTextError: The line is not UTF-8.
    """
    if number == 1 and is_utf16(line):
        raise NotTextError(f"{path}:1: {utf16_problem(path)}")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotTextError(f"{path}:{number}: {_not_utf8(line[error.start])}") from None


def _not_utf8(byte: int) -> str:
    return (
        f"the line is not UTF-8, because it contains the byte 0x{byte:02x}. Convert the file to UTF-8, or copy it "
        "again if it is damaged."
    )


def is_utf16(content: bytes) -> bool:
    """Return whether the first bytes of a file are UTF-16: they have a byte order mark, or every second byte is 0."""
    even, odd = content[:64:2], content[1:64:2]
    is_latin = len(content) > 5 and any(all(a) and not any(b) for a, b in ((even, odd), (odd, even)))
    return content.startswith(_UTF16_MARKS) or is_latin


def utf16_problem(path: Path | str) -> str:
    """Return the sentences that say that a file is UTF-16, and how to convert it."""
    return f"the text is UTF-16, but must be UTF-8. Convert it with: iconv -f UTF-16 -t UTF-8 {path} > NEW_FILE"


def colon_problem(path: Path | str) -> str:
    """Return the sentences that say why a path with a colon cannot hold data, or an empty text for other paths."""
    if os.pathsep not in str(path):
        return ""
    return (
        f"the path contains {os.pathsep!r}, at which fairseq splits a path into several. Choose a path without "
        f"{os.pathsep!r}, or give a symbolic link to it."
    )
