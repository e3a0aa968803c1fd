"""Read `sources.tsv`: the files of each corpus and the addresses where they are published."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import unquote, urlsplit

from shared import suggestion

from .errors import FetchError

COLUMNS = ["corpus", "file", "urls", "sha256", "bytes", "licence", "remarks"]
NAME = re.compile(r"[\w][\w.+-]*", re.ASCII)  # name of a corpus or file: one plain name, never a path
MD5 = "md5:"  # prefix of an md5 in the column sha256
SHARDS = re.compile(r"\{(\d+)\.\.(\d+)\}")  # {00000..01023}, which a shell would expand in the same way


@dataclass(frozen=True)
class Source:
    corpus: str  # empty for a file that the user named by its address
    name: str
    urls: tuple[str, ...]
    sha256: str = ""  # empty: none is published, so the first fetch records it
    md5: str = ""  # used if only an md5 is published
    size: int | None = None
    licence: str = "see source"
    remarks: str = ""

    @property
    def is_hash_published(self) -> bool:
        return bool(self.sha256 or self.md5)

    @property
    def known(self) -> str:
        """Return in words where the sha256 of the file comes from."""
        if self.sha256:
            return "published"
        return "md5 published, sha256 recorded" if self.md5 else "not published, recorded"

    @property
    def path(self) -> Path:
        """Return the path of the file, relative to the output folder."""
        return Path(self.corpus) / self.name

    def shards(self) -> Iterator[Source]:
        """Yield one source per number of a range such as `{00..99}` in the name, or the source itself."""
        shard = SHARDS.search(self.name)
        if shard is None:
            yield self
            return
        first, last = shard.groups()
        for number in range(int(first), int(last) + 1):
            text = str(number).zfill(len(first))
            urls = tuple(SHARDS.sub(text, url) for url in self.urls)
            yield replace(self, name=SHARDS.sub(text, self.name), urls=urls)


def read(path: Path) -> list[Source]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise FetchError(f"{path}: no list of sources ({error.strerror}); name one with --sources") from error
    except UnicodeDecodeError as error:
        raise FetchError(f"{path}: no text in UTF-8 ({error})") from error
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
    if rows.fieldnames != COLUMNS:
        raise FetchError(f"{path}: the first line must name the columns {', '.join(COLUMNS)}, parted by tabs")
    return [shard for row in rows for shard in _source(row, f"{path}, line {rows.line_num}").shards()]


def _source(row: dict[str, str], where: str) -> Source:
    if None in row or None in row.values():
        raise FetchError(f"{where}: {len(COLUMNS)} fields are needed, parted by tabs")
    for column, pattern in (
        ("corpus", NAME),
        ("sha256", re.compile(rf"([0-9a-f]{{64}}|{MD5}[0-9a-f]{{32}})?")),
        ("bytes", re.compile(r"\d*")),
    ):
        if not pattern.fullmatch(row[column]):
            raise FetchError(f"{where}: {column} cannot be {row[column]!r}")
    if not NAME.fullmatch(SHARDS.sub("0", row["file"])):
        raise FetchError(f"{where}: a file name without folders is needed, not {row['file']!r}")
    size = int(row["bytes"]) if row["bytes"] else None
    urls = tuple(_checked(url, where) for url in row["urls"].split())
    is_md5 = row["sha256"].startswith(MD5)
    sha256, md5 = ("", row["sha256"].removeprefix(MD5)) if is_md5 else (row["sha256"], "")
    return Source(row["corpus"], row["file"], urls, sha256, md5, size, row["licence"], row["remarks"])


def from_url(url: str) -> Source:
    """Return the source of a file that the user chose by its address; its name is the last part of the address."""
    name = unquote(urlsplit(_checked(url, "command line")).path).rpartition("/")[2]
    if not NAME.fullmatch(name):
        raise FetchError(f"{url}: the address ends in no plain file name")
    return Source("", name, (url,))


def _checked(url: str, where: str) -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise FetchError(f"{where}: {url!r} is no http:// or https:// address")
    return url


def choose(wanted: list[str], known: list[Source]) -> list[Source]:
    """Return the sources named by a corpus, by `corpus/file` (with `*`) or by an address, in order and each once."""
    chosen: dict[Source, None] = {}
    for word in wanted:
        chosen.update(dict.fromkeys([from_url(word)] if "://" in word else _matching(word, known)))
    return list(chosen)


def _matching(word: str, known: list[Source]) -> list[Source]:
    corpus, _, pattern = word.partition("/")
    names = list(dict.fromkeys(source.corpus for source in known))
    if corpus not in names:
        raise FetchError(f"unknown corpus {corpus!r}{suggestion(corpus, names)}; known: {', '.join(names)}")
    files = [source for source in known if source.corpus == corpus]
    matching = [source for source in files if fnmatch(source.name, pattern or "*")]
    if not matching:
        file_names = [source.name for source in files]
        shown = ", ".join(file_names[:20]) + (", ..." if len(file_names) > 20 else "")
        raise FetchError(f"{corpus} has no file {pattern!r}{suggestion(pattern, file_names)}; it has: {shown}")
    return matching
