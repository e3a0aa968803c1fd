"""Read the sgm files of WMT's test sets: documents of segments, in a source file and a reference file.

The files resemble SGML but are not valid (a bare & is common), so no SGML parser reads them. sacreBLEU uses regular
expressions, too. This module also decodes entities, and aligns the two files by document and segment.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import NamedTuple

from corpora.compressed import DAMAGED, damaged, opened
from corpora.errors import CorpusError

_PART = re.compile(r"<doc\b(?P<doc>[^>]*)>|<seg\b(?P<seg>[^>]*)>(?P<text>.*?)</seg\s*>", re.IGNORECASE | re.DOTALL)
_SET, _END = (re.compile(rf"<{end}(src|ref|tst)set\b", re.IGNORECASE) for end in ("", "/"))
_SEGMENT = re.compile(r"<seg\b", re.IGNORECASE)


class Segment(NamedTuple):
    line: int
    document: str
    id: str
    text: str

    @property
    def key(self) -> tuple[str, str]:
        return self.document, self.id


def is_sgm(path: Path) -> bool:
    return ".sgm" in path.suffixes


def pairs(source: Path, reference: Path) -> list[tuple[Segment, Segment]]:
    """Return the aligned segments, in the order of the source file.

    Raises:
        CorpusError: A file cannot be read, or one file has segments that the other lacks.
    """
    first, second = read(source), read(reference)
    by_key = {one.key: one for one in second}
    if {one.key for one in first} == by_key.keys():
        return [(one, by_key[one.key]) for one in first]
    # In newstest2013, the two source files name their documents by language; then segments are aligned by order. If the
    # files share a document name, names are meaningful, and one file lacks segments of the other.
    shared = {one.document for one in first} & {one.document for one in second}
    if shared or [one.id for one in first] != [one.id for one in second]:
        raise _missing(source, reference, first, by_key)
    return [*zip(first, second, strict=True)]


def read(path: Path) -> list[Segment]:
    """Return the segments of a file.

    Raises:
        CorpusError: The file is damaged, not UTF-8 or truncated, has no segments, or repeats one.
    """
    text = _content(path)
    found, document, line, place = list[Segment](), "", 1, 0
    for part in _PART.finditer(text):
        line, place = line + text.count("\n", place, part.start()), part.start()
        if part["doc"] is not None:
            document = _attribute(path, line, "docid", part["doc"])
            continue
        if _SEGMENT.search(part["text"]):
            raise CorpusError.at(path, line, "a segment without </seg>: the file is damaged, fetch it again")
        words = html.unescape(part["text"]).split()
        found.append(Segment(line, document, _attribute(path, line, "id", part["seg"]), " ".join(words)))
    if len(found) != len(_SEGMENT.findall(text)) or (_SET.search(text) and not _END.search(text)):
        raise CorpusError.at(path, 1 + text.count("\n"), "the file is cut, fetch it again")
    return _once(path, found)


def _content(path: Path) -> str:
    try:
        with opened(path) as file:
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        raise CorpusError.at(path, line, "no UTF-8: fetch the file again, or convert it") from None
    except DAMAGED as error:
        raise damaged(path, 1, error) from None


def _attribute(path: Path, line: int, name: str, given: str) -> str:
    match = re.search(rf"""\b{name}\s*=\s*["']([^"']*)["']""", given, re.IGNORECASE)
    if match is None:
        raise CorpusError.at(path, line, f'no {name}="..." in <{"doc" if name == "docid" else "seg"}{given}>')
    return match[1]


def _once(path: Path, found: list[Segment]) -> list[Segment]:
    if not found:
        raise CorpusError(f"{path}: no <seg> in it: give one of WMT's sgm files")
    keys = set[tuple[str, str]]()
    for one in found:
        if one.key in keys:
            raise CorpusError.at(path, one.line, f"segment {one.id} of document {one.document!r} comes twice")
        keys.add(one.key)
    return found


def _missing(
    source: Path, reference: Path, first: list[Segment], second: dict[tuple[str, str], Segment]
) -> CorpusError:
    here = {one.key for one in first}
    lone = next(((source, reference, one) for one in first if one.key not in second), None)
    path, other, one = lone or next((reference, source, one) for key, one in second.items() if key not in here)
    return CorpusError.at(path, one.line, f"segment {one.id} of document {one.document!r} is not in {other}")
