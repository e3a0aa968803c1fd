"""Read the articles of a Wikipedia dump (pages-articles.xml) as text.

The standard library parses the XML, and mwparserfromhell parses the markup. The last version of WikiExtractor (3.0.6)
cannot be imported on Python 3.11 (inline flags inside a regular expression), and its licence is the AGPL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from .compressed import DAMAGED, damaged
from .errors import CorpusError
from .lines import Document

#: keys in <siteinfo> of the namespaces whose links are removed: files are embedded, and categories only sort pages
FILES, CATEGORIES = "6", "14"
#: maximum characters of the markup of a page; longer pages are generated lists or tables
LONGEST = 2_000_000
_NO_TEXT = {"ref", "references", "gallery", "imagemap", "timeline", "math", "score", "syntaxhighlight", "source"}
_OTHER_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]+)*")
_LEFT = re.compile(r"\(\s*[,;:]*\s*\)|__[A-Z]+__|'{2,}")  # remains of removed templates and styles
_TABLE = re.compile(r"\{\|(?:(?!\{\||\|\}).)*\|\}", re.DOTALL)  # an innermost table


def is_dump(head: bytes) -> bool:
    return re.match(rb"\s*(<\?xml[^>]*>\s*)?<mediawiki[\s>]", head.removeprefix(b"\xef\xbb\xbf")) is not None


def pages(path: Path, file: IO[bytes]) -> Iterator[Document]:
    """Yield the articles of a dump: the pages of namespace 0 that are not redirects.

    `Document.line` is the number of the page.

    Raises:
        CorpusError: The file is damaged, or its XML is truncated.
    """
    number, unwanted, root = 0, {"file", "image", "category"}, None
    try:
        for event, element in ElementTree.iterparse(file, events=("start", "end")):
            root = element if root is None else root
            name = _name(element)
            if event == "end" and name == "namespace" and element.get("key") in (FILES, CATEGORIES):
                unwanted.add((element.text or "").lower())
            elif event == "end" and name == "page":
                number += 1
                if (markup := _article(path, number, element)) is not None:
                    yield Document(number, _Page(markup, frozenset(unwanted)))
                root.clear()  # otherwise all pages would stay in memory
    except ElementTree.ParseError as error:
        raise CorpusError.at(
            path, error.position[0], f"the dump is damaged or incomplete ({error}). Fetch the dump again."
        ) from None
    except DAMAGED as error:
        raise damaged(path, number + 1, error) from None


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _article(path: Path, number: int, page: ElementTree.Element) -> str | None:
    """Return the markup of a page (an empty text if it is too long), or None if the page is not an article.

    Raises:
        CorpusError: The page has no namespace or no text.
    """
    parts = {_name(element): element.text or "" for element in page.iter()}

    def part(name: str) -> str:
        if name not in parts:
            title = parts.get("title", "without a title")
            missing = f"page {number} ({title}) has no element <{name}>, which every page of a Wikipedia dump has"
            raise CorpusError(f"{path}: {missing}. Fetch pages-articles.xml again.")
        return parts[name]

    if part("ns") != "0" or "redirect" in parts:
        return None
    text = part("text")
    return text if len(text) <= LONGEST else ""


class _Page:
    """Yield the lines of a page. A page is parsed only when it is read, so no task parses pages of other tasks."""

    def __init__(self, markup: str, unwanted: frozenset[str]) -> None:
        self.markup, self.unwanted = markup, unwanted

    def __iter__(self) -> Iterator[str]:
        return iter(plain(self.markup, self.unwanted).split("\n"))


def plain(markup: str, unwanted: frozenset[str] = frozenset({"file", "image", "category"})) -> str:
    """Return the text without templates, tables, notes, files and categories, or "" if parsing fails."""
    import mwparserfromhell
    from mwparserfromhell.parser import ParserError

    try:
        code = mwparserfromhell.parse(_without_tables(markup), skip_style_tags=True)
    except (ParserError, RecursionError):
        return ""
    links = [link for link in code.filter_wikilinks(recursive=True) if _is_unwanted(str(link.title), unwanted)]
    tags = [tag for tag in code.filter_tags(recursive=True) if str(tag.tag).strip().lower() in _NO_TEXT]
    for node in links + tags:
        _remove(code, node)
    return _LEFT.sub("", str(code.strip_code()))


def _without_tables(markup: str) -> str:
    """Remove tables from the innermost outwards; mwparserfromhell would leave the text of their cells."""
    while (shorter := _TABLE.sub("", markup)) != markup:
        markup = shorter
    return markup


def _is_unwanted(title: str, unwanted: frozenset[str]) -> bool:
    prefix, colon, _ = title.partition(":")
    prefix = prefix.strip().lower()
    return bool(colon) and (prefix in unwanted or _OTHER_LANGUAGE.fullmatch(prefix) is not None)


def _remove(code: Any, node: Any) -> None:
    try:
        code.remove(node)
    except ValueError:  # it was removed with the node that contained it
        return
