"""Read text files that the user gives.

This file imports the standard library only: data scripts load it without the package, which needs torch.
"""

from __future__ import annotations

from pathlib import Path


class NotTextError(ValueError):
    """Report that a file is not UTF-8; the message names the file and the line."""


def read_utf8(path: Path) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        NotTextError: The file is not UTF-8.
    """
    content = path.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotTextError(
            f"{path}:{line}: the line is not UTF-8, because it contains the byte 0x{content[error.start]:02x}. Convert "
            "the file to UTF-8, or copy it again if it is damaged."
        ) from None
