"""Read the documents of a file one at a time. The file's name determines only the compression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO

import orjson

from . import archive, dump
from .compressed import DAMAGED, damaged, opened
from .errors import CorpusError
from .lines import Document, Line, read

#: maximum characters of a document, which is held in memory as a whole
LONGEST = 20_000_000
_DOC = re.compile(r"<doc id=.*>\s*")
_TITLE = re.compile(r" ?= [^=]+ = ?")  # first-level heading of WikiText; a second-level one is `= = Section = =`
_BOOK = re.compile(r"# \S.*")  # first-level heading of Markdown


Reader = Callable[[Path, Iterator[Line]], Iterator[Document]]


def documents(path: Path, kind: str = "auto") -> Iterator[Document]:
    """Yield all documents of a file, including empty ones, because a document is identified by its number in the file.

    Args:
        kind: One of `KINDS`. With auto, the first bytes identify tar archives and dumps, and the first non-empty line
            identifies the kind of text.
    Raises:
        CorpusError: The file is damaged, not text or not of this kind, or a document is too long.
    """
    with opened(path) as file:
        head = _head(path, file)
        if kind in ("auto", "tar") and archive.is_tar(head):
            yield from archive.members(path, file)
        elif kind in ("auto", "dump") and dump.is_dump(head):
            yield from dump.pages(path, file)
        elif kind in ("tar", "dump"):
            raise CorpusError.at(path, 1, f"the file is not a {kind} file. Give --documents auto to detect the format.")
        else:
            yield from _of_text(path, read(path, file), kind)


def _head(path: Path, file: IO[bytes]) -> bytes:
    """Return the first bytes of a file, and go back to its beginning."""
    try:
        head = file.read(1024)
    except DAMAGED as error:
        raise damaged(path, 1, error) from None
    file.seek(0)
    return head


def _of_text(path: Path, lines: Iterator[Line], kind: str) -> Iterator[Document]:
    first = next((line for line in lines if line.text.strip()), None)
    if first is None:
        return
    yield from READERS[_kind(first.text) if kind == "auto" else kind](path, chain([first], lines))


def _kind(line: str) -> str:
    if line.lstrip().startswith("{"):
        return "jsonl"
    forms = {"wiki": _DOC, "wikitext": _TITLE, "file": _BOOK}
    return next((kind for kind, form in forms.items() if form.fullmatch(line)), "text")


def too_long(path: Path, line: int) -> CorpusError:
    """Return the error for a document with too many characters."""
    cure = "Separate documents by blank lines, or see --documents."
    return CorpusError.at(path, line, f"this document has more than {LONGEST:,} characters. {cure}")


def _text(path: Path, lines: Iterator[Line]) -> Iterator[Document]:
    """Yield the documents of a text in which blank lines separate documents."""
    return _grouped(path, lines, lambda line: not line.strip())


def _wikitext(path: Path, lines: Iterator[Line]) -> Iterator[Document]:
    """Yield the articles of a WikiText file. A title begins an article; blank lines do not."""
    return _grouped(path, lines, lambda line: _TITLE.fullmatch(line) is not None)


def _file(path: Path, lines: Iterator[Line]) -> Iterator[Document]:
    return _grouped(path, lines, lambda line: False)


def _grouped(path: Path, lines: Iterator[Line], parts: Callable[[str], bool]) -> Iterator[Document]:
    """Yield the documents of a text, without blank lines. A document begins where `parts` returns true.

    Args:
        parts: Function that returns whether a line begins a new document.
    """
    begun, texts, size = 1, list[str](), 0
    for number, line in lines:
        if parts(line) and texts:
            yield Document(begun, texts)
            texts, size = [], 0
        if line.strip():
            begun = begun if texts else number
            texts.append(line)
            size += len(line)
        if size > LONGEST:  # raised before the whole file is in memory
            raise too_long(path, begun)
    if texts:
        yield Document(begun, texts)


def _jsonl(path: Path, lines: Iterator[Line]) -> Iterator[Document]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            text = orjson.loads(line)["text"]
        except (ValueError, KeyError, TypeError):
            text = None
        if not isinstance(text, str):
            raise CorpusError.at(
                path, number, 'each line must be JSON with a field "text". For plain text, give --documents text.'
            )
        yield Document(number, text.split("\n"))


def _wiki(path: Path, lines: Iterator[Line]) -> Iterator[Document]:
    texts, begun, size = list[str](), 0, 0
    for number, line in lines:
        size += len(line)
        if begun and size > LONGEST:
            raise too_long(path, begun)
        if _DOC.fullmatch(line):
            if begun:
                raise CorpusError.at(
                    path, number, f"the document in line {begun} has no </doc>. Extract the file again."
                )
            texts, begun, size = [], number, 0
        elif line.strip() == "</doc>":
            if not begun:
                raise CorpusError.at(path, number, "there is no <doc ...> before this </doc>. Extract the file again.")
            yield Document(begun, texts)
            texts, begun = [], 0
        elif begun:
            texts.append(line)
        elif line.strip():
            raise CorpusError.at(path, number, "the line is outside of <doc ...> and </doc>. Extract the file again.")
    if begun:
        raise CorpusError.at(path, begun, "the file ends within this document. Fetch or extract the file again.")


READERS: dict[str, Reader] = {"text": _text, "jsonl": _jsonl, "wiki": _wiki, "wikitext": _wikitext, "file": _file}
KINDS = ("auto", *READERS, "dump", "tar")
