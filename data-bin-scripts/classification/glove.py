"""Read word vectors in GloVe's text format as a stream, so that memory holds only the vectors of the wanted words.

The published glove.840B.300d.zip holds one file of 2.2 million lines (5.6 GB). Each line has a word and 300
numbers, separated by spaces. Some words themselves contain spaces (". . ."). If a word occurs twice, its first vector
is used.
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


def read(path: Path, words: Collection[str]) -> Vectors:
    """Return the vectors of the words that the file contains.

    Args:
        path: A text file, or a zip archive with one text file.
    Raises:
        CorpusError: The file cannot be read, or a line has fewer numbers than the first one.
    """
    vectors, width = Vectors(), 0
    with _opened(path) as lines:
        for number, line in enumerate(lines, start=1):
            width = width or _width(path, line)
            fields = line.rstrip(b"\r\n").rstrip(b" ").rsplit(b" ", width)
            if len(fields) <= width:
                what = f"the line has {len(fields) - 1} numbers after the word instead of {width}"
                raise CorpusError.at(path, number, f"{what}. Fetch the file again.")
            word = fields[0].decode("utf-8", errors="replace")
            if word in words and word not in vectors:
                vectors[word] = _numbers(path, number, fields[1:])
    if not width:
        raise CorpusError(f"--glove {path}: the file is empty. Give word vectors in GloVe's format.")
    return vectors


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Yield the text file, opened for reading; an archive is not unpacked to disk."""
    if path.suffix != ".zip":
        with path.open("rb") as file:
            yield file
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
            if len(names) != 1:
                what = f"the archive holds {len(names)} files instead of one file of word vectors"
                raise CorpusError(f"--glove {path}: {what}. Unpack the archive, and give the file of word vectors.")
            with archive.open(names[0]) as file:
                yield file  # type: ignore[misc]
    except zipfile.BadZipFile as error:
        raise CorpusError(f"--glove {path}: the archive is damaged ({error}). Download the archive again.") from None


def _width(path: Path, line: bytes) -> int:
    """Return how many numbers follow the word in the first line; the word may contain spaces."""
    fields = line.split()
    width = 0
    while width < len(fields) - 1 and _is_number(fields[-1 - width]):
        width += 1
    if width < 2:
        what = "the line is not a word followed by numbers, separated by spaces. Give word vectors in GloVe's format."
        raise CorpusError.at(path, 1, what)
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
        what = f"the fields after the word must be numbers ({error}). Fetch the file again."
        raise CorpusError.at(path, number, what) from None
    if not np.isfinite(vector).all():
        raise CorpusError.at(path, number, "a number is infinite or NaN. Fetch the file again.")
    return vector
