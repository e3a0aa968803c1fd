"""Read `sources.tsv`: the files of each corpus and the addresses where they are published."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import unquote, urlsplit

from shared import NotTextError, read_lines, suggestion

from .errors import FetchError

COLUMNS = ["corpus", "file", "urls", "sha256", "bytes", "licence", "remarks"]
NAME = re.compile(r"[\w][\w.+-]*", re.ASCII)  # name of a corpus or file: one plain name, never a path
#: Names that fetch.py gives to its own files; `fetched.tsv.gz` would be unpacked to such a name.
RESERVED = re.compile(r"fetched\.tsv(\..*)?|.*\.(part|part\.json|partial)", re.ASCII | re.IGNORECASE)
MD5 = "md5:"  # prefix of an md5 in the column sha256
SHARDS = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}")  # {00000..01023}, which a shell would expand in the same way
MOST_SHARDS = 100_000  # files of a line; a longer list would not fit in memory


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
        """Return a text that says where the sha256 of the file comes from."""
        if self.sha256:
            return "as published"
        return "recorded; the published md5 matches" if self.md5 else "recorded; no hash is published"

    @property
    def path(self) -> Path:
        """Return the path of the file, relative to the output folder."""
        return Path(self.corpus) / self.name

    def shards(self) -> Iterator[Source]:
        """Yield the source itself or, if its name has a range such as `{00..99}`, a source for each number."""
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
        lines = read_lines(path)
    except OSError as error:
        raise FetchError(f"--sources {path}: the list cannot be read ({error.strerror}). Give another file.") from error
    except NotTextError as error:
        raise FetchError(f"--sources {error}") from None
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
    try:
        if rows.fieldnames != COLUMNS:
            raise FetchError(f"{path}:1: the first line must name the columns {', '.join(COLUMNS)}, separated by tabs.")
        return [shard for row in rows for shard in _source(row, f"{path}:{rows.line_num}").shards()]
    except csv.Error as error:
        raise FetchError(f"{path}:{rows.line_num + 1}: the line cannot be read ({error}). Correct the list.") from None


def _source(row: dict[str, str], where: str) -> Source:
    if None in row or None in row.values():
        raise FetchError(f"{where}: the line must have {len(COLUMNS)} fields, separated by tabs.")
    for column, pattern, allowed in (
        ("corpus", NAME, "a plain name"),
        ("sha256", re.compile(rf"([0-9a-f]{{64}}|{MD5}[0-9a-f]{{32}})?"), f"64 hexadecimal digits, or {MD5} and 32"),
        ("bytes", re.compile(r"\d{0,18}"), "a whole number"),
    ):
        if not pattern.fullmatch(row[column]):
            raise FetchError(f"{where}: the column `{column}` holds {row[column]!r} instead of {allowed}.")
    if not NAME.fullmatch(SHARDS.sub("0", row["file"])):
        raise FetchError(f"{where}: the column `file` holds {row['file']!r} instead of a file name without folders.")
    if (shard := SHARDS.search(row["file"])) and int(shard[2]) - int(shard[1]) >= MOST_SHARDS:
        raise FetchError(f"{where}: the column `file` names more than {MOST_SHARDS:,} files. Correct the numbers.")
    for name in (row["corpus"], row["file"]):
        _refuse_reserved(name, where)
    size = int(row["bytes"]) if row["bytes"] else None
    urls = tuple(_checked(url, where) for url in row["urls"].split())
    is_md5 = row["sha256"].startswith(MD5)
    sha256, md5 = ("", row["sha256"].removeprefix(MD5)) if is_md5 else (row["sha256"], "")
    return Source(row["corpus"], row["file"], urls, sha256, md5, size, row["licence"], row["remarks"])


def from_url(url: str) -> Source:
    """Return the source of a file that the user chose by its address; its name is the last part of the address."""
    name = unquote(urlsplit(_checked(url, "command line")).path).rpartition("/")[2]
    if not NAME.fullmatch(name):
        raise FetchError(f"{url!r}: the address does not end with a file name. Give the address of a file.")
    _refuse_reserved(name, "command line")
    return Source("", name, (url,))


def _refuse_reserved(name: str, where: str) -> None:
    if RESERVED.fullmatch(name):
        raise FetchError(
            f"{where}: a file named {name} would overwrite a file in which fetch.py keeps its records. Download this "
            "file with another program."
        )


def _checked(url: str, where: str) -> str:
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:  # a wrong port or IPv6 address
        raise FetchError(f"{where}: the address {url!r} is not valid ({error}). Correct it.") from error
    if not is_web:
        raise FetchError(f"{where}: the address {url!r} must begin with http:// or https:// and the name of a server.")
    return url


def choose(names: list[str], known: list[Source]) -> list[Source]:
    """Return the named sources without duplicates; a name is `corpus`, `corpus/file` (`*` allowed) or an address."""
    chosen: dict[Source, None] = {}
    for name in names:
        chosen.update(dict.fromkeys([from_url(name)] if "://" in name else _matching(name, known)))
    return list(chosen)


def _matching(name: str, known: list[Source]) -> list[Source]:
    corpus, _, pattern = name.partition("/")
    corpora = list(dict.fromkeys(source.corpus for source in known))
    if corpus not in corpora:
        raise FetchError(f"unknown corpus {corpus!r} (corpora: {', '.join(corpora)}){suggestion(corpus, corpora)}")
    files = [source for source in known if source.corpus == corpus]
    matching = [source for source in files if fnmatch(source.name, pattern or "*")]
    if not matching:
        file_names = [source.name for source in files]
        shown = ", ".join(file_names[:20]) + (", ..." if len(file_names) > 20 else "")
        guess = suggestion(pattern, file_names)
        raise FetchError(f"{name}: no file of the corpus {corpus} has this name (its files: {shown}){guess}")
    return matching
