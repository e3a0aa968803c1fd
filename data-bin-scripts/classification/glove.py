"""Word vectors in GloVe's text format, read as a stream, so that memory depends on the kept words alone.

The published glove.840B.300d.zip holds one file of 2.2 million lines (5.6 GB): a word, then 300 numbers, separated by
spaces. Some words contain spaces themselves (". . ."), and some occur twice; the first vector of a word counts.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from corpora.errors import CorpusError
from numpy.typing import NDArray

Vectors = dict[str, NDArray[np.float32]]


def read(path: Path, wanted: Collection[str]) -> Vectors:
    """Return the vectors of the wanted words that the file contains.

    Args:
        path: A text file, or a zip archive with one text file.
    Raises:
        CorpusError: The file cannot be read, or a line does not have as many numbers as the first one.
    """
    vectors, width = Vectors(), 0
    with _opened(path) as lines:
        for number, line in enumerate(lines, start=1):
            width = width or _width(path, line)
            fields = line.rstrip(b"\r\n").rstrip(b" ").rsplit(b" ", width)
            if len(fields) <= width:
                raise CorpusError.at(path, number, f"{len(fields) - 1} numbers after the word instead of {width}")
            word = fields[0].decode("utf-8", errors="replace")
            if word in wanted and word not in vectors:
                vectors[word] = _numbers(path, number, fields[1:])
    if not width:
        raise CorpusError(f"{path}: the file is empty; word vectors in GloVe's format are wanted")
    return vectors


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Yield the lines of the text."""
    if path.suffix != ".zip":
        with path.open("rb") as file:
            yield file
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
            if len(names) != 1:
                raise CorpusError(f"{path}: the archive holds {len(names)} files; one file of word vectors is wanted")
            with archive.open(names[0]) as file:
                yield file  # type: ignore[misc]
    except zipfile.BadZipFile as error:
        raise CorpusError(f"{path}: the archive is damaged ({error}); download it again") from None


def _width(path: Path, line: bytes) -> int:
    """Return the number of numbers at the end of the first line; a word with spaces may stand before them."""
    fields = line.split()
    width = 0
    while width < len(fields) - 1 and _is_number(fields[-1 - width]):
        width += 1
    if width < 2:
        raise CorpusError.at(path, 1, "a word and its numbers, separated by spaces, are wanted")
    return width


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _numbers(path: Path, number: int, fields: list[bytes]) -> NDArray[np.float32]:
    try:
        vector = np.array([float(field) for field in fields], dtype=np.float32)
    except ValueError as error:
        raise CorpusError.at(path, number, f"{error}; numbers are wanted after the word") from None
    if not np.isfinite(vector).all():
        raise CorpusError.at(path, number, "a number is not finite")
    return vector
