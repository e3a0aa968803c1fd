"""The downloader, against a server on this machine: what it survives, what it refuses, what it leaves behind."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from support_http import Site, serve

SCRIPTS = Path(__file__).resolve().parents[1] / "data-bin-scripts"
sys.path.insert(0, str(SCRIPTS))

import fetch  # noqa: E402  (a script's folder, no package)
from fetching import download, record, sources, transfer, unpack  # noqa: E402

TEXT = bytes(range(256)) * 1024  # 256 KiB, four chunks
HASH = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def site(monkeypatch) -> Iterator[Site]:
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve() as site:
        yield site


class Ended(NamedTuple):
    status: int
    out: str
    error: str


class Lab:
    """A list of sources, an output folder, and runs."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.output, self.list, self.capsys = folder / "raw", folder / "sources.tsv", capsys
        self.list.write_text("\t".join(sources.COLUMNS) + "\n")

    def row(self, name: str, urls: str, sha256: str = "", size: int | None = None, corpus: str = "text") -> None:
        fields = [corpus, name, urls, sha256, "" if size is None else str(size), "see source", ""]
        with self.list.open("a") as file:
            file.write("\t".join(fields) + "\n")

    def run(self, *arguments: object) -> Ended:
        told = [str(word) for word in (arguments or ("text",))]
        status = fetch.main([*told, "--output", str(self.output), "--sources", str(self.list)])
        return Ended(status, *self.capsys.readouterr())

    def files(self) -> set[str]:
        """All but the program's own records."""
        found = {path.relative_to(self.output).as_posix() for path in self.output.rglob("*") if not path.is_dir()}
        return found - {".lock", "fetched.tsv"}


@pytest.fixture
def lab(tmp_path, capsys) -> Lab:
    return Lab(tmp_path, capsys)


# --- connections


def test_a_file_comes_whole_and_is_recorded(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT), HASH, len(TEXT))
    assert lab.run().status == 0
    assert (lab.output / "text/a.txt").read_bytes() == TEXT
    entry = record.Record(lab.output).get(Path("text/a.txt"))
    assert entry is not None
    assert (entry.sha256, entry.bytes) == (HASH, str(len(TEXT)))
    assert lab.files() == {"text/a.txt"}


@pytest.mark.parametrize("length", [True, False], ids=["length", "no-length"])
def test_a_cut_connection_is_gone_on_from(lab, site, length):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000, 100_000]), HASH)
    ended = lab.run("text", "--retries", 0)  # each attempt brought something, so none counts
    assert ended.status == 0
    assert site.ranges() == ["", "bytes=70000-", "bytes=170000-"]
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_a_later_run_goes_on_from_what_an_earlier_one_kept(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000, 0]))
    first = lab.run("text", "--retries", 0)
    assert first.status == 1
    assert "70,000 bytes are kept" in first.error
    assert lab.files() == {"text/a.txt.part", "text/a.txt.part.json"}
    assert lab.run().status == 0
    assert site.ranges()[-1] == "bytes=70000-"
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_a_server_without_ranges_sends_the_whole_again(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000], ranges=False), HASH)
    assert lab.run().status == 0
    assert site.ranges() == ["", "bytes=70000-"]
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_a_file_that_changed_meanwhile_is_not_mixed(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000, 0]))
    lab.run("text", "--retries", 0)
    site.put("a.txt", TEXT[::-1], etag='"2"')
    assert lab.run().status == 0
    assert (lab.output / "text/a.txt").read_bytes() == TEXT[::-1]


def test_without_a_way_to_notice_a_change_the_whole_comes_again(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000], etag=""))
    assert lab.run().status == 0
    assert site.ranges() == ["", ""]


def test_a_part_that_the_server_no_longer_has_is_dropped(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000, 0], etag=""), HASH)
    lab.run("text", "--retries", 0)
    site.put("a.txt", TEXT[:500], etag="")  # shorter than what is kept: 416, then the whole, which is wrong
    ended = lab.run()
    assert ended.status == 1
    assert site.ranges()[-2:] == ["bytes=70000-", ""]
    assert lab.files() == set()


def test_another_part_than_was_asked_for_is_not_taken(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000], shift=-10))
    assert lab.run().status == 0
    assert site.ranges() == ["", "bytes=70000-", ""]
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_a_killed_run_leaves_nothing_under_the_final_name_and_is_gone_on_from(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, stall=70_000, delay=20))
    command = [sys.executable, SCRIPTS / "fetch.py", "text", "--output", lab.output, "--sources", lab.list]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        part = lab.output / "text/a.txt.part"
        while not (part.exists() and part.stat().st_size):
            time.sleep(0.01)
        process.kill()
    assert lab.files() == {"text/a.txt.part", "text/a.txt.part.json"}
    site.put("a.txt", TEXT)
    assert lab.run().status == 0
    assert site.ranges() == ["", f"bytes={transfer.CHUNK}-"]
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_redirects_are_followed(lab, site):
    lab.row("a.txt", site.put("old", status=302, location=site.put("new", TEXT)), HASH)
    assert lab.run().status == 0
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_a_cut_after_a_redirect_is_gone_on_from(lab, site):
    lab.row("a.txt", site.put("old", status=302, location=site.put("new", TEXT, cuts=[70_000])))
    assert lab.run().status == 0
    assert site.asked == [("/old", ""), ("/new", ""), ("/old", "bytes=70000-"), ("/new", "bytes=70000-")]
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_a_web_page_in_place_of_a_file_is_not_recorded(lab, site):
    lab.row("a.txt", site.put("a.txt", b"\n<!DOCTYPE html><title>Please log in</title>"))
    assert "a web page came" in lab.run().error
    assert lab.files() == set()
    assert record.Record(lab.output).get(Path("text/a.txt")) is None


def test_a_slow_server_is_given_up(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, delay=0.5), HASH)
    ended = lab.run("text", "--timeout", 0.1, "--retries", 1)
    assert ended.status == 1
    assert "no answer for 0.1 seconds (--timeout)" in ended.error
    assert len(site.asked) == 2


def test_a_busy_server_is_asked_again(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, status=503), HASH)
    assert "503" in lab.run("text", "--retries", 2).error
    assert len(site.asked) == 3


@pytest.mark.parametrize("bad", ["missing", "corrupt", "cut"])
def test_the_next_mirror_is_tried(lab, site, bad):
    pages = {"missing": {"status": 404}, "corrupt": {"content": b"x" * len(TEXT)}, "cut": {"cuts": [9] + [0] * 9}}
    first = site.put("first", **{"content": TEXT, **pages[bad]})
    lab.row("a.txt", f"{first} {site.put('second', TEXT)}", HASH)
    assert lab.run("text", "--retries", 1).status == 0
    assert (lab.output / "text/a.txt").read_bytes() == TEXT
    assert lab.files() == {"text/a.txt"}


def test_an_address_itself_can_be_fetched(lab, site):
    assert lab.run(site.put("some.txt", TEXT)).status == 0
    assert (lab.output / "some.txt").read_bytes() == TEXT


# --- content


@pytest.mark.parametrize("length", [True, False], ids=["length", "no-length"])
def test_a_wrong_size_is_refused(lab, site, length):
    lab.row("a.txt", site.put("a.txt", TEXT + b"!", length=length), "", len(TEXT))
    ended = lab.run()
    assert ended.status == 1
    assert f"{len(TEXT):,} bytes are published" in ended.error
    assert lab.files() == set()


def test_wrong_content_is_refused_before_it_is_unpacked(lab, site):
    lab.row("a.txt.gz", site.put("a.txt.gz", gzip.compress(b"other")), HASH)
    ended = lab.run()
    assert ended.status == 1
    found = hashlib.sha256(site.pages["/a.txt.gz"].content).hexdigest()
    assert all(word in ended.error for word in ("text/a.txt.gz", HASH, found))
    assert lab.files() == set()


def test_an_unpublished_hash_is_recorded_and_held_to(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT))
    assert HASH in lab.run().out
    (lab.output / "text/a.txt").unlink()
    site.put("a.txt", TEXT + b"!")
    ended = lab.run()
    assert ended.status == 1
    assert HASH in ended.error
    assert "delete the line of text/a.txt" in ended.error
    assert lab.files() == set()


def test_a_file_that_was_damaged_later_is_refused_and_kept(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT))
    lab.run()
    (lab.output / "text/a.txt").write_bytes(TEXT[:-1])
    ended = lab.run()
    assert ended.status == 1
    assert "Delete the file and run again" in ended.error
    assert len(site.asked) == 1


def test_a_rerun_does_nothing(lab, site):
    lab.row("a.tgz", site.put("a.tgz", tar(("a/one", b"1"))))
    lab.run()
    before = {path: path.stat().st_mtime_ns for path in lab.output.rglob("*") if path.name != ".lock"}
    assert lab.run().status == 0
    assert before == {path: path.stat().st_mtime_ns for path in lab.output.rglob("*") if path.name != ".lock"}
    assert len(site.asked) == 1


def test_an_archive_may_be_deleted_once_it_is_unpacked(lab, site):
    lab.row("a.tgz", site.put("a.tgz", tar(("a/one", b"1"))))
    lab.run()
    (lab.output / "text/a.tgz").unlink()
    assert lab.run().status == 0
    assert len(site.asked) == 1


def test_what_an_outdated_archive_held_is_not_taken_for_the_new(lab, site):
    lab.row("a.tgz", site.put("a.tgz", tar(("a/one", b"1"))))
    lab.run()
    (lab.output / "text/a.tgz").unlink()
    new = tar(("a/one", b"2"))
    site.put("a.tgz", new)
    lab.list.write_text("\t".join(sources.COLUMNS) + "\n")
    lab.row("a.tgz", f"{site.address}/a.tgz", hashlib.sha256(new).hexdigest())
    assert "is in the way" in lab.run().error
    unpack.remove(lab.output / "text/a")
    assert lab.run().status == 0
    assert (lab.output / "text/a/one").read_bytes() == b"2"


def test_the_other_files_come_though_one_fails(lab, site):
    lab.row("a.txt", f"{site.address}/nowhere")
    lab.row("b.txt", site.put("b.txt", TEXT))
    ended = lab.run()
    assert ended.status == 1
    assert len(ended.error.splitlines()) == 1
    assert lab.files() == {"text/b.txt"}


def test_a_full_disk_ends_the_run_with_one_line(lab, site, monkeypatch):
    lab.row("a.txt", site.put("a.txt", TEXT))
    lab.row("b.txt", site.put("b.txt", TEXT))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(transfer.Partial, "begin", full)
    ended = lab.run()
    assert ended.status == 1
    assert "no space left" in ended.error
    assert len(ended.error.splitlines()) == len(site.asked) == 1


def test_too_little_space_is_told_before_the_download(lab, site, monkeypatch):
    lab.row("a.txt", site.put("a.txt", TEXT))
    monkeypatch.setattr(transfer.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    assert "more than the disk has free" in lab.run().error
    assert lab.files() == set()


# --- archives

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


@pytest.mark.parametrize(("ending", "pack"), [(".tgz", tar), (".tar.gz", tar), (".zip", zipped)])
def test_archives_are_unpacked_beside_themselves(lab, site, ending, pack: Callable[..., bytes]):
    lab.row(f"v1{ending}", site.put("v1", pack(("one", b"1"), ("sub/two", b"2"))))
    assert lab.run().status == 0
    assert lab.files() == {f"text/v1{ending}", "text/v1/one", "text/v1/sub/two"}


@pytest.mark.parametrize("ending", [".tgz", ".zip"])
def test_a_single_folder_in_an_archive_is_not_doubled(lab, site, ending):
    pack = tar if ending == ".tgz" else zipped
    lab.row(f"v1{ending}", site.put("v1", pack(("v1/one", b"1"), ("v1/sub/v1", b"2"), ("__MACOSX/x", b""))))
    assert lab.run().status == 0
    assert lab.files() == {f"text/v1{ending}", "text/v1/one", "text/v1/sub/v1"}


def test_a_packed_file_is_unpacked(lab, site):
    lab.row("a.en.gz", site.put("a.en.gz", gzip.compress(b"text")))
    lab.run()
    assert (lab.output / "text/a.en").read_bytes() == b"text"


def test_unpacking_can_wait(lab, site):
    lab.row("a.tgz", site.put("a.tgz", tar(("one", b"1"))))
    lab.run("text", "--no-unpack")
    assert lab.files() == {"text/a.tgz"}
    lab.run()
    assert lab.files() == {"text/a.tgz", "text/a/one"}
    assert len(site.asked) == 1


EVIL = {
    "tar-parent": ("a.tgz", tar(("good", b"1"), ("../../evil", b"2"))),
    "tar-symlink": ("a.tgz", tar(links=(("link", "../../evil", tarfile.SYMTYPE),))),
    "tar-absolute-symlink": ("a.tgz", tar(links=(("link", "/etc/hostname", tarfile.SYMTYPE),))),
    "tar-hard-link": ("a.tgz", tar(links=(("link", "../evil", tarfile.LNKTYPE),))),
    "tar-link-to-folder": ("a.tgz", tar(("sub/one", b"1"), links=(("link", "sub", tarfile.SYMTYPE),))),
    "tar-link-to-itself": ("a.tgz", tar(links=(("link", "link", tarfile.SYMTYPE),))),
    "tar-device": ("a.tgz", tar(links=(("device", "", tarfile.CHRTYPE),))),
    "tar-pipe": ("a.tgz", tar(links=(("pipe", "", tarfile.FIFOTYPE),))),
    "tar-cut": ("a.tgz", tar(("one", TEXT))[:-200]),
    "zip-parent": ("a.zip", zipped(("good", b"1"), ("x/../../evil", b"2"))),
    "zip-drive": ("a.zip", zipped(("C:/evil", b"2"))),
    "zip-symlink": ("a.zip", zipped(("link", b"../../evil"), mode=0o120777)),
    "zip-device": ("a.zip", zipped(("device", b""), mode=0o020777)),
    "zip-damaged": ("a.zip", zipped(("one", b"abcdefgh")).replace(b"abcdefgh", b"abcdefgX")),
    "no-tar": ("a.tar", b"not found"),
    "no-archive": ("a.zip", b"not found"),
    "no-gzip": ("a.gz", b"not found"),
}


@pytest.mark.parametrize(("name", "content"), EVIL.values(), ids=EVIL)
def test_what_has_no_business_in_a_corpus_is_refused(lab, site, tmp_path, name, content):
    lab.row(name, site.put(name, content))
    ended = lab.run()
    assert ended.status == 1
    assert f"{name}: not unpacked: " in ended.error
    assert len(ended.error.splitlines()) == 1
    assert lab.files() == {f"text/{name}"}  # nothing of it, neither here
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "sources.tsv"}  # ... nor beside


@pytest.mark.parametrize(("name", "pack"), [("a.tgz", tar), ("a.zip", zipped)])
def test_an_absolute_name_is_refused(lab, site, tmp_path, name, pack: Callable[..., bytes]):
    lab.row(name, site.put(name, pack((str(tmp_path / "evil"), b"2"))))
    assert "no path below a folder" in lab.run().error
    assert lab.files() == {f"text/{name}"}
    assert not (tmp_path / "evil").exists()


def test_a_link_inside_becomes_a_copy(lab, site):
    links = (("again", "sub/one", tarfile.SYMTYPE), ("sub/hard", "sub/one", tarfile.LNKTYPE))
    lab.row("a.tgz", site.put("a.tgz", tar(("sub/one", b"1"), links=links)))
    assert lab.run().status == 0
    assert {path.read_bytes() for path in (lab.output / "text/a").rglob("*") if path.is_file()} == {b"1"}
    assert not any(path.is_symlink() for path in lab.output.rglob("*"))


def test_what_a_killed_run_left_half_unpacked_is_replaced(lab, site):
    lab.row("a.tgz", site.put("a.tgz", tar(("one", b"1"))))
    (lab.output / "text/a.unpacking").mkdir(parents=True)
    (lab.output / "text/a.unpacking/half").write_text("x")
    assert lab.run().status == 0
    assert lab.files() == {"text/a.tgz", "text/a/one"}


def test_what_others_laid_there_is_not_overwritten(lab, site):
    lab.row("a.tgz", site.put("a.tgz", tar(("one", b"1"))))
    (lab.output / "text/a").mkdir(parents=True)
    assert "is in the way" in lab.run().error


def test_a_name_without_an_archive_ending_is_left_alone():
    named = {name: unpack.target_of(name) for name in ("a.tar.xz", "a.tar.gz", "a.gz", "a.json", "a.xml.bz2", ".gz")}
    assert named == {"a.tar.xz": "a", "a.tar.gz": "a", "a.gz": "a", "a.json": None, "a.xml.bz2": None, ".gz": None}


# --- options


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("folder", ["text", "."])
def test_a_folder_of_ones_own_replaces_the_download(lab, site, tmp_path, packed, folder):
    lab.row("a.txt", site.put("a.txt", TEXT), HASH)
    own = tmp_path / "own"
    (own / folder).mkdir(parents=True)
    (own / folder / ("a.txt.gz" if packed else "a.txt")).write_bytes(gzip.compress(TEXT) if packed else TEXT)
    assert lab.run("text", "--from", own).status == 0
    assert (lab.output / "text/a.txt").read_bytes() == TEXT
    assert site.asked == []


def test_any_path_can_be_recorded(lab, tmp_path):
    lab.row("a.txt", "http://127.0.0.1/a.txt")
    own = tmp_path / 'my "own"\tfolder\n'
    own.mkdir()
    (own / "a.txt").write_bytes(TEXT)
    for _ in range(2):
        assert lab.run("text", "--from", own).status == 0


def test_a_folder_of_ones_own_is_checked_too(lab, site, tmp_path):
    lab.row("a.txt", site.put("a.txt", TEXT), HASH)
    lab.row("b.txt", site.put("b.txt", TEXT), "", 7)
    (tmp_path / "b.txt").write_bytes(b"seven or more")
    assert "7 bytes are published" in lab.run("text/b.txt", "--from", tmp_path).error
    (tmp_path / "a.txt").write_bytes(b"other")
    ended = lab.run("text/a.txt", "--from", tmp_path)
    assert (ended.status, lab.files(), site.asked) == (1, set(), [])
    assert HASH in ended.error
    (tmp_path / "a.txt").unlink()
    assert "no such folder" in lab.run("text", "--from", tmp_path / "a.txt").error
    assert "neither text/a.txt nor a.txt is there" in lab.run("text/a.txt", "--from", tmp_path).error


def test_a_file_laid_in_place_by_hand_is_taken_and_recorded(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT))
    (lab.output / "text").mkdir(parents=True)
    (lab.output / "text/a.txt").write_bytes(TEXT)
    assert "found in place" in lab.run().out
    assert site.asked == []


@pytest.mark.parametrize(
    ("limit", "names"),
    [("1", {"a"}), ("2", {"a", "b"}), ("150B", {"a"}), ("160B", {"a", "c"}), ("1K", {"a", "b", "c"})],
)
@pytest.mark.parametrize("published", [True, False], ids=["published", "told-by-server"])
def test_a_limit_lets_whole_files_through(lab, site, limit, names, published):
    for name, size in (("a", 100), ("b", 90), ("c", 60)):
        lab.row(name, site.put(name, b"x" * size), "", size if published else None)
    for _ in range(2):
        assert lab.run("text", "--limit", limit).status == 0
        assert lab.files() == {f"text/{name}" for name in names}


def test_a_limit_that_lets_nothing_through_is_an_error(lab, site):
    lab.row("a", site.put("a", TEXT, length=False))
    assert "--limit lets no file through" in lab.run("text", "--limit", "1K").error
    assert lab.files() == set()


@pytest.mark.parametrize("limit", ["0", "-1", "many", "1.5G"])
def test_a_limit_that_is_no_number_is_refused(lab, limit):
    with pytest.raises(SystemExit):
        lab.run("text", f"--limit={limit}")


def test_the_dry_run_touches_nothing(lab, site):
    lab.row("a.tgz", site.put("a.tgz", TEXT))
    ended = lab.run("text", "--dry-run")
    assert ended.status == 0
    assert f"{lab.output}/text/a.tgz  <-  {site.address}/a.tgz" in ended.out
    assert site.asked == []
    assert not lab.output.exists()


def test_an_unknown_corpus_is_refused_with_the_nearest(lab, site):
    lab.row("a", site.put("a"), corpus="wikitext-103")
    ended = lab.run("wikitext103")
    assert ended.status == 1
    assert "did you mean 'wikitext-103'?" in ended.error
    assert "did you mean 'a'?" in lab.run("wikitext-103/A").error
    assert not lab.output.exists()


def test_some_files_of_a_corpus_can_be_named(lab, site):
    for name in ("a.en", "a.de", "b.en"):
        lab.row(name, site.put(name, b"1"))
    assert lab.run("text/*.en", "text/b.en").status == 0
    assert lab.files() == {"text/a.en", "text/b.en"}


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/a", "file:///etc/hostname", "https://127.0.0.1/..%2f", "http://x/"])
def test_an_address_without_a_plain_name_or_of_another_kind_is_refused(lab, url):
    assert lab.run(url).status == 1


@pytest.mark.parametrize("name", ["../a", "a/b", ".a", "", "-a"])
def test_a_source_cannot_lie_elsewhere(lab, name):
    lab.row(name, "http://127.0.0.1/a")
    assert "line 2" in lab.run().error


@pytest.mark.parametrize("damage", [b"file\n", b"\tx", b"a\n", b"\xff"], ids=["header", "fields", "few", "bytes"])
def test_a_damaged_record_is_not_guessed_at(lab, site, damage):
    lab.row("a.txt", site.put("a.txt", TEXT))
    lab.run()
    path = lab.output / "fetched.tsv"
    path.write_bytes(damage if damage == b"file\n" else path.read_bytes().rstrip(b"\n") + damage * 9)
    ended = lab.run()
    assert ended.status == 1
    assert "fetched.tsv: no record of this program, or damaged" in ended.error


def test_a_second_run_in_one_folder_waits(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT))
    with record.only_one(lab.output):
        thread = threading.Thread(target=lab.run)
        thread.start()
        thread.join(timeout=0.3)
        assert thread.is_alive()
        assert site.asked == []
    thread.join()
    assert lab.files() == {"text/a.txt"}


# --- the list that the project ships


def test_every_shipped_source_is_well_formed_and_listed_once(capsys):
    assert fetch.main(["--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len({(row["corpus"], row["file"]) for row in rows}) == len(rows)
    assert all(row["urls"] and row["licence"] for row in rows)
    corpora = (
        "wmt18 wikitext-103 gpt2-bpe bert-vocab squad cmrc2018 glue xnli xquad mlqa tydiqa multi30k openwebtext c4"
    )
    assert set(f"{corpora} wikipedia imdb snli glove".split()) <= {row["corpus"] for row in rows}


def test_what_files_unpack_to_is_in_nobodys_way():
    known = sources.read(SCRIPTS / "sources.tsv")
    targets = [source.path.with_name(unpack.target_of(source.name) or source.name) for source in known]
    assert len(set(targets)) == len(known)


def test_shards_are_counted_out():
    known = [source for source in sources.read(SCRIPTS / "sources.tsv") if source.corpus == "c4"]
    assert known[1].name == "c4-train.00001-of-01024.json.gz"
    assert known[1].urls[0].endswith(known[1].name)
    assert len(known) == 1024 + 8


def test_it_runs_from_anywhere_and_explains_itself(tmp_path):
    script = str(SCRIPTS / "fetch.py")
    helped = subprocess.run(
        [sys.executable, script, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "examples:" in helped.stdout
    failed = subprocess.run([sys.executable, script, "glu"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: unknown corpus 'glu'; did you mean 'glue'?")
    assert failed.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
