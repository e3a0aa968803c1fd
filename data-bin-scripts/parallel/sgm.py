"""Read the sgm files of WMT's test sets: a source file and a reference file, which list the segments of documents.

The files resemble SGML but are not valid (a bare & is common), so no SGML parser reads them. Like sacreBLEU, this
module uses regular expressions. The module also decodes entities, and aligns the two files by document and segment.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import NamedTuple

from corpora.compressed import DAMAGED, damaged, opened
from corpora.errors import CorpusError
from shared import is_utf16, utf16_problem

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
    by_key = {segment.key: segment for segment in second}
    if {segment.key for segment in first} == by_key.keys():
        return [(segment, by_key[segment.key]) for segment in first]
    # In newstest2013, the two files name their documents differently, so segments are aligned by order. But if the
    # files share a document name, one file lacks segments of the other.
    shared = {segment.document for segment in first} & {segment.document for segment in second}
    if shared or [segment.id for segment in first] != [segment.id for segment in second]:
        raise _missing(source, reference, first, by_key)
    return [*zip(first, second, strict=True)]


def read(path: Path) -> list[Segment]:
    """Return the segments of a file.

    Raises:
        CorpusError: The file is damaged, not UTF-8 or truncated, has no segments, or has a segment twice.
    """
    text = _content(path)
    segments, document, line, place = list[Segment](), "", 1, 0
    for part in _PART.finditer(text):
        line, place = line + text.count("\n", place, part.start()), part.start()
        if part["doc"] is not None:
            document = _attribute(path, line, "docid", part["doc"])
            continue
        if _SEGMENT.search(part["text"]):
            raise CorpusError.at(path, line, "a segment has no </seg>, so the file is damaged. Fetch the file again.")
        words = html.unescape(part["text"]).split()
        segments.append(Segment(line, document, _attribute(path, line, "id", part["seg"]), " ".join(words)))
    if len(segments) != len(_SEGMENT.findall(text)) or (_SET.search(text) and not _END.search(text)):
        raise CorpusError.at(path, 1 + text.count("\n"), "the file is truncated. Fetch the file again.")
    return _checked(path, segments)


def _content(path: Path) -> str:
    try:
        with opened(path) as file:
            content = file.read()
        if is_utf16(content):
            raise CorpusError.at(path, 1, utf16_problem(path))
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        raise CorpusError.at(path, line, "the line is not UTF-8. Fetch the file again, or convert it.") from None
    except DAMAGED as error:
        raise damaged(path, 1, error) from None


def _attribute(path: Path, line: int, name: str, attributes: str) -> str:
    match = re.search(rf"""\b{name}\s*=\s*["']([^"']*)["']""", attributes, re.IGNORECASE)
    if match is None:
        tag = f"<{'doc' if name == 'docid' else 'seg'}{attributes}>"
        raise CorpusError.at(path, line, f"the tag {tag} has no attribute {name}. Fetch the file again.")
    return match[1]


def _checked(path: Path, segments: list[Segment]) -> list[Segment]:
    if not segments:
        raise CorpusError(f"{path}: the file has no <seg>. Give one of WMT's sgm files.")
    keys = set[tuple[str, str]]()
    for segment in segments:
        if segment.key in keys:
            raise CorpusError.at(path, segment.line, f"{_name(segment)} occurs twice. Fetch the file again.")
        keys.add(segment.key)
    return segments


def _name(segment: Segment) -> str:
    return f"segment {segment.id} of document {segment.document!r}"


def _missing(
    source: Path, reference: Path, first: list[Segment], second: dict[tuple[str, str], Segment]
) -> CorpusError:
    keys = {segment.key for segment in first}
    lone = next(((source, reference, segment) for segment in first if segment.key not in second), None)
    path, other, segment = lone or next(
        (reference, source, segment) for key, segment in second.items() if key not in keys
    )
    return CorpusError.at(path, segment.line, f"{_name(segment)} is not in {other}. Fetch both files again.")
