"""Test fetch.py against a web server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fetch
import pytest
from support_scripts import Ended, Runs


class Site:
    """Serve `pages`, break the connection after the numbers of bytes in `cuts`, and note the requested ranges."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.headers: dict[str, str] = {}
        self.cuts: list[int] = []
        self.asked: list[str] = []
        self.ranges, self.address = True, ""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(fetch, "PAUSE", 0.0)
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            site.asked.append(asked)
            body = site.pages.get(self.path.strip("/"))
            begin = int(asked[6:-1]) if asked and site.ranges else 0
            self.send_response(404 if body is None else 206 if begin else 200)
            body = (body or b"")[begin:]
            for name, value in {"Content-Length": str(len(body)), **site.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: site.cuts.pop(0)] if site.cuts else body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        site.address = f"http://127.0.0.1:{server.server_address[1]}"
        yield site
        server.shutdown()


class Fetches(Runs):
    """Run fetch.py with a list of one's own."""

    def list(self, *files: tuple[str, bytes, dict[str, str]], site: Site) -> None:
        """List files with their right sizes and hashes, or with those that the last part gives."""
        rows = ["\t".join(fetch.COLUMNS)]
        for name, content, other in files:
            urls = " ".join(f"{site.address}/{mirror}" for mirror in other.get("mirrors", name).split())
            row = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": str(len(content))} | other
            rows.append("\t".join(["set", name, urls, row["sha256"], row["bytes"], "free", ""]))
        (self.folder / "list.tsv").write_text("\n".join(rows) + "\n")

    def get(self, *words: object) -> Ended:
        return self.run(*(words or ["set"]), "--sources", self.folder / "list.tsv")

    def files(self) -> set[str]:
        paths = (path for path in self.output.rglob("*") if path.is_file() and path.name not in (".lock", fetch.RECORD))
        return {path.relative_to(self.output / "set").as_posix() for path in paths}


@pytest.fixture
def fetches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fetches:
    return Fetches(fetch.main, tmp_path, capsys)


def packed(names: dict[str, bytes], kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in names.items():
                archive.writestr(name, content)
        return file.getvalue()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for name, content in names.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def test_files_are_checked_unpacked_and_not_fetched_again(site: Site, fetches: Fetches) -> None:
    site.pages = {
        "a.zip": packed({"top/x": b"1", "top/y/z": b"2", "__MACOSX/x": b"3"}, "zip"),
        "b.tgz": packed({"x": b"1", "y": b"2"}, "tgz"),
        "c.txt.gz": gzip.compress(b"text"),
    }
    fetches.list(*((name, content, {}) for name, content in site.pages.items()), site=site)
    (fetches.output / "set" / "a.partial" / "content").mkdir(parents=True)  # left by a killed run
    assert fetches.get().status == 0
    assert fetches.files() == {*site.pages, "a/x", "a/y/z", "b/x", "b/y", "c.txt"}
    (fetches.output / "set" / "a.zip").unlink()  # an unpacked archive may be deleted
    site.asked.clear()
    assert fetches.get().status == 0
    assert site.asked == []
    (fetches.output / "set" / "b.tgz").write_bytes(site.pages["b.tgz"][:-1] + b"!")
    assert "instead of" in fetches.get().error


@pytest.mark.parametrize(("ranges", "cuts"), [(True, [9_000] * 2 * fetch.ATTEMPTS), (False, [100_000, 50_000])])
def test_a_cut_download_goes_on(site: Site, fetches: Fetches, ranges: bool, cuts: list[int]) -> None:
    """It goes on as long as new bytes arrive. Without ranges, each attempt begins anew."""
    site.pages, site.cuts, site.ranges = {"a": os.urandom(300_000)}, [*cuts], ranges
    fetches.list(("a", site.pages["a"], {}), site=site)
    assert fetches.get().status == 0
    assert (site.asked[0], site.asked[1][:6], len(site.asked)) == ("", "bytes=", len(cuts) + 1)
    assert (fetches.output / "set" / "a").read_bytes() == site.pages["a"]


@pytest.mark.parametrize(
    ("row", "headers", "reason"),
    [
        ({}, {}, "the sha256 is"),
        ({"bytes": "4"}, {}, "bytes instead of 4"),
        ({"mirrors": "nothing"}, {}, "HTTP 404"),
        ({"sha256": ""}, {"Content-Type": "text/html"}, "a page instead of the file"),
        ({"sha256": ""}, {"X-Linked-Etag": f'"{"0" * 64}"'}, f"instead of {'0' * 64}"),
    ],
)
def test_a_wrong_file_is_refused(
    site: Site, fetches: Fetches, row: dict[str, str], headers: dict[str, str], reason: str
) -> None:
    site.pages, site.headers = {"a": b"wrong"}, headers
    fetches.list(("a", b"right", row), site=site)
    ended = fetches.get()
    assert ended.status == 1
    assert reason in ended.error
    assert fetches.files() == set()


def test_the_next_mirror_is_tried_and_the_other_files_are_fetched(site: Site, fetches: Fetches) -> None:
    site.pages = {"bad": b"wrong", "good": b"right", "b": b"other"}
    rows = [("a", b"right", {"mirrors": "nothing bad good"}), ("missing", b"", {}), ("b", b"other", {})]
    fetches.list(*rows, site=site)
    assert fetches.get().status == 1
    assert fetches.files() == {"a", "b"}


def test_without_a_published_hash_the_first_one_counts(site: Site, fetches: Fetches) -> None:
    site.pages = {"a": b"first"}
    fetches.list(("a", b"", {"sha256": "", "bytes": ""}), site=site)
    assert fetches.get().status == 0
    record = json.loads((fetches.output / fetch.RECORD).read_text())
    assert record["set/a"]["sha256"] == hashlib.sha256(b"first").hexdigest()
    (fetches.output / "set" / "a").unlink()
    site.pages = {"a": b"later"}
    assert fetch.RECORD in fetches.get().error
    assert fetches.files() == set()


@pytest.mark.parametrize("kind", ["zip", "tgz"])
@pytest.mark.parametrize("name", ["../evil", "/evil/x", "broken"])
def test_nothing_is_written_outside(site: Site, fetches: Fetches, kind: str, name: str) -> None:
    content = packed({"fine": b"1", name: b"2"}, kind)
    site.pages = {f"a.{kind}": content[:60] if name == "broken" else content}
    fetches.list((f"a.{kind}", site.pages[f"a.{kind}"], {}), site=site)
    ended = fetches.get()
    written = {path.name for path in fetches.folder.rglob("*") if path.is_file()}
    if (name, kind) == ("/evil/x", "tgz"):  # the filter `data` removes the leading slash
        assert written >= {"fine", "x"}
        assert (fetches.output / "set" / "a" / "evil" / "x").exists()
    else:
        assert ended.status == 1
        assert f"a.{kind} cannot be unpacked" in ended.error
        assert written == {"list.tsv", ".lock", fetch.RECORD, f"a.{kind}"}


def test_the_published_list_is_sound(tmp_path: Path, fetches: Fetches) -> None:
    sources = list(fetch.read(Path(fetch.__file__).with_name("sources.tsv")))
    assert len({source.path for source in sources}) == len(sources) > 1000
    without = {source.corpus for source in sources if not source.sha256}
    assert without == {"gpt2-bpe", "multi30k", "c4", "wikipedia"}  # no publisher states these hashes; C4's server does
    assert all(url.startswith(("http://", "https://")) for source in sources for url in source.urls.split())
    assert "did you mean wmt18?" in fetches.run("wmt1").error
    bad = tmp_path / "list.tsv"
    for row in ("a\tb", "../a\tb\t\t\t\t\t", "a\t{0..999999}\t\t\t\t\t", "a\tb\t\tx\t\t\t"):
        bad.write_text("\t".join(fetch.COLUMNS) + f"\n{row}\n")
        assert f"{bad}:2: " in fetches.get().error
