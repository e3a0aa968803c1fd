"""Read the documents of a file one at a time. The file's name determines only the compression."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

from shared import CorpusError

from . import dump
from .lines import DAMAGED, Line, damaged, opened, read

#: maximum characters of a document, which is held in memory as a whole
LONGEST = 20_000_000
_DOC = re.compile(r"<doc id=.*>\s*")
_TITLE = re.compile(r" ?= [^=]+ = ?")  # first-level heading of WikiText; a second-level one is `= = Section = =`
_BOOK = re.compile(r"# \S.*")  # first-level heading of Markdown


class Document(NamedTuple):
    """Hold the number of a document's first line (from 1), and its uncleaned lines, which can be read only once."""

    line: int
    text: Iterable[str]


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
        try:
            head = file.read(1024)
        except DAMAGED as error:
            raise damaged(path, 1, error) from None
        file.seek(0)
        if kind in ("auto", "tar") and head[257:262] == b"ustar":
            yield from _members(path, file)
        elif kind in ("auto", "dump") and dump.is_dump(head):
            yield from (Document(number, text) for number, text in dump.pages(path, file))
        elif kind in ("tar", "dump"):
            raise CorpusError.at(path, 1, f"the file is not a {kind} file. Give --documents auto to detect the format.")
        else:
            lines = read(path, file)
            first = next((line for line in lines if line.text.strip()), None)
            if first is not None:
                yield from READERS[_kind(first.text) if kind == "auto" else kind](path, chain([first], lines))


def _kind(line: str) -> str:
    forms = {"jsonl": re.compile(r"\s*\{.*"), "wiki": _DOC, "wikitext": _TITLE, "file": _BOOK}
    return next((kind for kind, form in forms.items() if form.fullmatch(line)), "text")


def _members(path: Path, file: IO[bytes]) -> Iterator[Document]:
    """Yield the files of a tar archive, such as OpenWebText's, without unpacking it to disk."""
    number = 0
    try:
        with tarfile.open(fileobj=file, mode="r|") as tar:
            for number, member in enumerate(tar, start=1):
                if content := tar.extractfile(member) if member.isfile() else None:
                    yield Document(number, [line.text for line in read(path / member.name, content)])
    except (*DAMAGED, tarfile.TarError) as error:
        raise damaged(path, number + 1, error) from None


def _grouped(begins: Callable[[str], bool]) -> Reader:
    """Return a reader of documents without blank lines; `begins` returns whether a line begins a new document."""

    def reader(path: Path, lines: Iterator[Line]) -> Iterator[Document]:
        begun, texts, size = 1, list[str](), 0
        for number, line in lines:
            if begins(line) and texts:
                yield Document(begun, texts)
                texts, size = [], 0
            if line.strip():
                begun = begun if texts else number
                texts.append(line)
                size += len(line)
            if size > LONGEST:  # raised before the whole file is in memory
                what = f"this document has more than {LONGEST:,} characters. Separate documents by blank lines"
                raise CorpusError.at(path, begun, f"{what}, or see --documents.")
        if texts:
            yield Document(begun, texts)

    return reader


def _jsonl(path: Path, lines: Iterator[Line]) -> Iterator[Document]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            yield Document(number, json.loads(line)["text"].split("\n"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            what = 'each line must be JSON with a field "text". For plain text, give --documents text.'
            raise CorpusError.at(path, number, what) from None


def _wiki(path: Path, lines: Iterator[Line]) -> Iterator[Document]:
    texts, begun = list[str](), 0
    for number, line in lines:
        opens, closes = _DOC.fullmatch(line) is not None, line.strip() == "</doc>"
        if opens if begun else line.strip() and not opens:
            what = (
                f"<doc ...> in line {begun} has no </doc>" if begun else "the line is outside of <doc ...> and </doc>"
            )
            raise CorpusError.at(path, number, f"{what}. Extract the file again.")
        if closes:
            yield Document(begun, texts)
        begun, texts = (number, []) if opens else (0, texts) if closes else (begun, texts)
        if begun and not opens:
            texts.append(line)
    if begun:
        raise CorpusError.at(path, begun, "the file ends within this document. Fetch or extract the file again.")


READERS: dict[str, Reader] = {
    "text": _grouped(lambda line: not line.strip()),
    "jsonl": _jsonl,
    "wiki": _wiki,
    "wikitext": _grouped(lambda line: _TITLE.fullmatch(line) is not None),
    "file": _grouped(lambda line: False),
}
KINDS = ("auto", *READERS, "dump", "tar")
