"""Provide the tests of the downloader with its modules, a list of sources with an output folder, and archives.

PYTEST_DONT_REWRITE: it asserts nothing, and is imported before it is named as a plugin.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fetch
import pytest
from fetching import download, sources
from support_http import Site, serve
from support_scripts import Ended, Runs

TEXT = bytes(range(256)) * 1024  # 256 KiB, four chunks
HASH = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def site(monkeypatch) -> Iterator[Site]:
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve() as site:
        yield site


class Lab(Runs):
    """Run the downloader with a list of sources and an output folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(fetch.main, folder, capsys)
        self.output, self.list = folder / "raw", folder / "sources.tsv"
        self.list.write_text("\t".join(sources.COLUMNS) + "\n")

    def row(self, name: str, urls: str, sha256: str = "", size: int | None = None, corpus: str = "text") -> None:
        fields = [corpus, name, urls, sha256, "" if size is None else str(size), "see source", ""]
        with self.list.open("a") as file:
            file.write("\t".join(fields) + "\n")

    def run(self, *words: object, output: Path | None = None) -> Ended:
        return super().run(*(words or ("text",)), "--sources", self.list, output=output)

    def files(self) -> set[str]:
        """Return the names of all files except the program's own records."""
        names = {path.relative_to(self.output).as_posix() for path in self.output.rglob("*") if not path.is_dir()}
        return names - {".lock", "fetched.tsv"}


@pytest.fixture
def lab(tmp_path, capsys) -> Lab:
    return Lab(tmp_path, capsys)


Entry = tuple[str, bytes]


def tar(*entries: Entry, links: tuple[tuple[str, str, bytes], ...] = ()) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in entries:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, target, kind in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
    return packed.getvalue()


def zipped(*entries: Entry, mode: int = 0) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return packed.getvalue()
