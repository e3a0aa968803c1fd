"""Read the articles of a Wikipedia dump (pages-articles.xml) as text.

The standard library parses the XML, and mwparserfromhell parses the markup. The last version of WikiExtractor (3.0.6)
cannot be imported on Python 3.11 (inline flags inside a regular expression), and its licence is the AGPL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from shared import CorpusError

from .lines import DAMAGED, damaged

#: keys in <siteinfo> of the namespaces whose links are removed: files are embedded, and categories only sort pages
UNWANTED = {"6": {"file", "image"}, "14": {"category"}}
#: maximum characters of the markup of a page; longer pages are generated lists or tables
LONGEST = 2_000_000
_NO_TEXT = {"ref", "references", "gallery", "imagemap", "timeline", "math", "score", "syntaxhighlight", "source"}
_OTHER_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]+)*")
_LEFT = re.compile(r"\(\s*[,;:]*\s*\)|__[A-Z]+__|'{2,}")  # remains of removed templates and styles
_TABLE = re.compile(r"\{\|(?:(?!\{\||\|\}).)*\|\}", re.DOTALL)  # an innermost table


def is_dump(head: bytes) -> bool:
    return re.match(rb"\s*(<\?xml[^>]*>\s*)?<mediawiki[\s>]", head.removeprefix(b"\xef\xbb\xbf")) is not None


def pages(path: Path, file: IO[bytes]) -> Iterator[tuple[int, Iterable[str]]]:
    """Yield the number and the lines of each article: the pages of namespace 0 that are not redirects.

    The markup is parsed only when the lines are read, so no task parses pages of other tasks.

    Raises:
        CorpusError: The file is damaged, or its XML is truncated.
    """
    number, unwanted, root = 0, set().union(*UNWANTED.values()), None
    try:
        for event, element in ElementTree.iterparse(file, events=("start", "end")):
            root = element if root is None else root
            name = element.tag.rpartition("}")[2]
            if event == "end" and name == "namespace" and element.get("key") in UNWANTED:
                unwanted.add((element.text or "").lower())
            elif event == "end" and name == "page":
                number += 1
                parts = {part.tag.rpartition("}")[2]: part.text or "" for part in element.iter()}
                if not {"ns", "text"} <= parts.keys():
                    raise CorpusError(
                        f"{path}: page {number} has no <ns> or no <text>. Fetch pages-articles.xml again."
                    )
                if parts["ns"] == "0" and "redirect" not in parts:
                    yield number, _lines(parts["text"], frozenset(unwanted))
                root.clear()  # otherwise all pages would stay in memory
    except ElementTree.ParseError as error:
        what = f"the dump is damaged or incomplete ({error}). Fetch the dump again."
        raise CorpusError.at(path, error.position[0], what) from None
    except DAMAGED as error:
        raise damaged(path, number + 1, error) from None


def _lines(markup: str, unwanted: frozenset[str]) -> Iterator[str]:
    yield from plain(markup, unwanted).split("\n") if len(markup) <= LONGEST else ()


def plain(markup: str, unwanted: frozenset[str] = frozenset({"file", "image", "category"})) -> str:
    """Return the text without templates, tables, notes, files and categories, or "" if parsing fails."""
    import mwparserfromhell
    from mwparserfromhell.parser import ParserError

    while (shorter := _TABLE.sub("", markup)) != markup:  # mwparserfromhell would leave the text of their cells
        markup = shorter
    try:
        code = mwparserfromhell.parse(markup, skip_style_tags=True)
    except (ParserError, RecursionError):
        return ""
    links = [link for link in code.filter_wikilinks(recursive=True) if _is_unwanted(str(link.title), unwanted)]
    tags = [tag for tag in code.filter_tags(recursive=True) if str(tag.tag).strip().lower() in _NO_TEXT]
    for node in links + tags:
        with suppress(ValueError):  # it was removed with the node that contained it
            code.remove(node)
    return _LEFT.sub("", str(code.strip_code()))


def _is_unwanted(title: str, unwanted: frozenset[str]) -> bool:
    prefix, colon, _ = title.partition(":")
    prefix = prefix.strip().lower()
    return bool(colon) and (prefix in unwanted or _OTHER_LANGUAGE.fullmatch(prefix) is not None)
