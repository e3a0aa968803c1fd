"""Read and check the lines of a text file in bounded memory."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from shared import is_utf16, utf16_problem

from .compressed import BLOCK, DAMAGED, damaged, opened
from .errors import CorpusError

#: maximum number of characters of a line; a corpus on a single line cannot be split into documents
LONGEST = 10_000_000
#: control characters that separate words, and the zero-width space
SPACE = re.compile(r"[\x0b\x0c\x1c-\x1f\x85\u200b]")
#: control characters, except tabs and line ends
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\u200b]")
#: Unicode categories: control, format, and separators
UNSEEN = {"Cc", "Cf", "Zs", "Zl", "Zp"}
#: a line with a larger fraction of control characters is binary data
MOST_CONTROL = 0.1


class Line(NamedTuple):
    """Hold the number of a line (from 1), and its text without the line end."""

    number: int
    text: str


class Document(NamedTuple):
    """Hold the number of a document's first line (from 1), and its uncleaned lines, which can be read only once."""

    line: int
    text: Iterable[str]


def read(path: Path, file: IO[bytes]) -> Iterator[Line]:
    """Yield the lines of an open file.

    Raises:
        CorpusError: The file is damaged, binary or not UTF-8, or a line is longer than `LONGEST`.
    """
    decoder, number, rest = codecs.getincrementaldecoder("utf-8")(), 0, ""
    while True:
        block = _block(path, file, number)
        if not number and is_utf16(block):
            raise CorpusError.at(path, 1, utf16_problem(path))
        *whole, rest = _decoded(path, decoder, block, number, rest)
        for text in whole:
            number += 1
            yield Line(number, checked(path, number, text))
        if len(rest) > LONGEST:
            raise _giant(path, number + 1)
        if not block:
            break
    if rest:
        yield Line(number + 1, checked(path, number + 1, rest))


def of_file(path: Path) -> Iterator[Line]:
    """Yield the lines of a plain or compressed file (see `read`)."""
    with opened(path) as file:
        yield from read(path, file)


def _block(path: Path, file: IO[bytes], number: int) -> bytes:
    try:
        return file.read(BLOCK)
    except DAMAGED as error:
        raise damaged(path, number + 1, error) from None


def _decoded(path: Path, decoder: codecs.IncrementalDecoder, block: bytes, number: int, rest: str) -> list[str]:
    """Return the lines of a block of text; the last line may continue in the next block."""
    try:
        return (rest + decoder.decode(block, final=not block)).split("\n")
    except UnicodeDecodeError as error:
        line = number + 1 + error.object[: error.start].count(b"\n")
        if b"\0" in error.object[:4096]:
            raise binary(path, line) from None
        cure = "Convert the file, for example with iconv -t UTF-8, or leave it out."
        raise CorpusError.at(path, line, f"this is not UTF-8 text. {cure}") from None


def tidy(text: str) -> str:
    """Return the text in Unicode NFC, without control characters, double spaces or spaces at the ends.

    Tabs, line ends and the characters of `SPACE` become spaces. If they were removed, the words would become one.
    """
    return " ".join(CONTROL.sub("", SPACE.sub(" ", unicodedata.normalize("NFC", text))).split())


def is_seen(text: str) -> bool:
    """Return whether the text has a visible character. Tokenizers ignore invisible characters."""
    return any(unicodedata.category(character) not in UNSEEN for character in text)


def checked(path: Path, number: int, text: str) -> str:
    """Return a line without the carriage return at its end; raise a CorpusError if it is binary or too long."""
    text = text.removesuffix("\r")
    if not text.isprintable() and len(CONTROL.findall(text)) > MOST_CONTROL * len(text) + 1:
        raise binary(path, number)
    if "\0" in text:
        cure = "Remove the NUL character. If the file is not text, leave it out."
        raise CorpusError.at(path, number, f"the line contains a NUL character. {cure}")
    if len(text) > LONGEST:
        raise _giant(path, number)
    return text


def binary(path: Path, number: int) -> CorpusError:
    """Return the error for binary data."""
    return CorpusError.at(path, number, "the file holds binary data, not text. Leave the file out.")


def _giant(path: Path, number: int) -> CorpusError:
    return CorpusError.at(path, number, f"this line has more than {LONGEST:,} characters. Break it into lines.")
