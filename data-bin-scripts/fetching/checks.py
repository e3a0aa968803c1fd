"""Size and hash of what came, against what is published or was recorded."""

from __future__ import annotations

from pathlib import Path

from shared import digest

from .errors import MirrorError
from .record import Entry
from .sources import Source


def is_page(path: Path) -> bool:
    """Whether it begins as web pages do, such as those of logins and errors that come in place of a file."""
    with path.open("rb") as file:
        return file.read(1000).lstrip().lower().startswith((b"<!doctype html", b"<html"))


def check(path: Path, source: Source, known: Entry | None) -> str:
    """The hash of the file, which is the published one, else the recorded one, else the first ever seen."""
    size = path.stat().st_size
    if source.size not in (None, size):
        raise MirrorError(f"the size is wrong: {source.size:,} bytes are published, {size:,} came")
    if not source.is_hash_published and not source.name.endswith((".html", ".htm")) and is_page(path):
        raise MirrorError("a web page came in place of the file")
    found = digest(path)
    if source.sha256 and found != source.sha256:
        raise MirrorError(f"the content is wrong: sha256 {source.sha256} is expected (published), found {found}")
    if source.md5 and (other := digest(path, "md5")) != source.md5:
        raise MirrorError(f"the content is wrong: md5 {source.md5} is expected (published), found {other}")
    if not source.is_hash_published and known and found != known.sha256:
        raise MirrorError(
            f"the content is wrong: sha256 {known.sha256} is expected (recorded {known.date}), found {found}; if "
            f"the publisher changed it and you want the new one, delete the line of {known.file} in fetched.tsv"
        )
    return found
