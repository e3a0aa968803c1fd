"""`--limit`: so many files, or so many bytes, of what was asked for, in whole files."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass
class Limit:
    files: int | None = None
    bytes: int | None = None

    def admits(self, size: int | None) -> bool:
        """Whether one more file is allowed; one of unknown size is, until its server tells it."""
        return self.files != 0 and (self.bytes is None or size is None or size <= self.bytes)

    def take(self, size: int) -> None:
        self.files = None if self.files is None else self.files - 1
        self.bytes = None if self.bytes is None else self.bytes - size


def parse(text: str) -> Limit:
    """`3` are files; `500M`, `2GB` and `1000B` are bytes."""
    match = re.fullmatch(r"(\d+)([KMGT]?)(B?)", text.strip().upper())
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of files (3) nor of bytes (500M, 2GB, 1000B)")
    if match[2] or match[3]:
        return Limit(bytes=int(match[1]) * UNITS[match[2]])
    return Limit(files=int(match[1]))
