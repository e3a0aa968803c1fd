"""Open plain or compressed files, and read and check their lines in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from backports import zstd
from shared import CorpusError, is_utf16, utf16_problem

OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": zstd.ZstdFile,  # unlike the package zstandard, reads all frames and detects a truncated file
}
#: exceptions that a damaged file raises, in any of the formats
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)
#: maximum number of bytes of a line; a corpus on a single line cannot be split into documents
LONGEST = 20_000_000
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


def opened(path: Path) -> IO[bytes]:
    """Return the uncompressed bytes of a file as a stream.

    Raises:
        CorpusError: The file does not exist, or cannot be read.
    """
    try:
        return cast(IO[bytes], OPENERS.get(path.suffix, lambda plain: plain.open("rb"))(path))
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror or error}.") from None


def there(path: Path, ends: Iterable[str] = (".gz",)) -> Path | None:
    """Return the plain file if it exists, otherwise the first compressed file that exists, or None."""
    return next((file for end in ("", *ends) if (file := path.with_name(f"{path.name}{end}")).is_file()), None)


def only_file(folder: Path, names: Iterable[str], cure: str, *, needed: bool = True) -> Path | None:
    """Return the only file in a folder that has one of these names, plain or .gz, or None if it is not needed.

    Args:
        cure: Sentence that says what the user can do.
    Raises:
        CorpusError: There are several of these files, or none although one is needed.
    """
    files = [path for name in names if (path := there(folder / name))]
    if len(files) > 1:
        raise CorpusError(f"{folder} has both {files[0].name} and {files[1].name}, which hold the same split. {cure}")
    if needed and not files:
        existing = ", ".join(sorted(path.name for path in folder.glob("*"))[:10]) or "nothing"
        raise CorpusError(f"{folder} has none of {', '.join(names)} (plain or .gz); it holds {existing}. {cure}")
    return files[0] if files else None


def damaged(path: Path, line: int, error: Exception) -> CorpusError:
    """Return the error for a file that cannot be read beyond this line."""
    what = f"the file is damaged or incomplete from here on ({error}). Fetch the file again."
    return CorpusError.at(path, line, what)


def of_file(path: Path) -> Iterator[Line]:
    """Yield the lines of a plain or compressed file (see `read`)."""
    with opened(path) as file:
        yield from read(path, file)


def read(path: Path, file: IO[bytes]) -> Iterator[Line]:
    """Yield the lines of an open file. Only a line feed ends a line, with or without a carriage return before it.

    Raises:
        CorpusError: The file is damaged, binary or not UTF-8, or a line is longer than `LONGEST`.
    """
    for number, line in enumerate(raw(path, file), start=1):
        yield Line(number, decoded(path, number, line))


def raw(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of an open file without their line feeds.

    Raises:
        CorpusError: The file is damaged or UTF-16, or a line is longer than `LONGEST`.
    """
    number = 0
    try:
        while line := file.readline(LONGEST):
            number += 1
            if number == 1 and is_utf16(line):
                raise CorpusError.at(path, 1, utf16_problem(path))
            if len(line) == LONGEST:
                raise CorpusError.at(path, number, f"this line has more than {LONGEST:,} bytes. Break it into lines.")
            yield line.removesuffix(b"\n")
    except DAMAGED as error:
        raise damaged(path, number + 1, error) from None


def decoded(path: Path, number: int, line: bytes) -> str:
    """Return a line as text, without a carriage return at its end.

    Raises:
        CorpusError: The line is binary or not UTF-8.
    """
    try:
        text = line.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError:
        what = "binary data, not text" if b"\0" in line else "bytes that are not UTF-8"
        cure = "Convert the file, for example with iconv -t UTF-8, or leave it out."
        raise CorpusError.at(path, number, f"the file holds {what}. {cure}") from None
    if "\0" in text or (not text.isprintable() and len(CONTROL.findall(text)) > MOST_CONTROL * len(text) + 1):
        raise CorpusError.at(path, number, "the file holds binary data, not text. Leave the file out.")
    return text


def tidy(text: str) -> str:
    """Return the text in Unicode NFC, without control characters, double spaces or spaces at the ends.

    Tabs, line ends and the characters of `SPACE` become spaces. If they were removed, the words would become one.
    """
    return " ".join(CONTROL.sub("", SPACE.sub(" ", unicodedata.normalize("NFC", text))).split())


def is_seen(text: str) -> bool:
    """Return whether the text has a visible character. Tokenizers ignore invisible characters."""
    return any(unicodedata.category(character) not in UNSEEN for character in text)
