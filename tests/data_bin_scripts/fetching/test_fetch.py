"""Test the downloader with a local server: what it survives, what it refuses, and which files it leaves."""

from __future__ import annotations

import errno
import gzip
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fetching import record, sources, transfer
from support_fetch import HASH, TEXT, tar
from support_scripts import SCRIPTS

pytest_plugins = ["support_fetch"]  # the fixtures `site` and `lab`


# --- connections


def test_a_file_comes_whole_and_is_recorded(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT), HASH, len(TEXT))
    assert lab.run().status == 0
    assert (lab.output / "text/a.txt").read_bytes() == TEXT
    entry = record.Record(lab.output).get(Path("text/a.txt"))
    assert entry is not None
    assert (entry.sha256, entry.bytes) == (HASH, str(len(TEXT)))
    assert lab.files() == {"text/a.txt"}


#: Options of the server, the published hash, and the parts that the downloader then requests.
CUT: dict[str, tuple[dict[str, object], str, list[str]]] = {
    "twice": ({"cuts": [70_000, 100_000]}, HASH, ["", "bytes=70000-", "bytes=170000-"]),
    "no ranges, so the whole file is sent again": ({"cuts": [70_000], "ranges": False}, HASH, ["", "bytes=70000-"]),
    "no way to notice a change, so the whole file is requested": ({"cuts": [70_000], "etag": ""}, "", ["", ""]),
    "another part than requested is refused": ({"cuts": [70_000], "shift": -10}, "", ["", "bytes=70000-", ""]),
}


@pytest.mark.parametrize(("page", "sha256", "ranges"), CUT.values(), ids=CUT)
def test_a_cut_connection_is_gone_on_from(lab, site, page, sha256, ranges):
    lab.row("a.txt", site.put("a.txt", TEXT, **page), sha256)
    ended = lab.run("text", "--retries", 0)  # an attempt that receives bytes is not counted
    assert ended.status == 0
    assert site.ranges() == ranges
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_a_later_run_goes_on_from_what_an_earlier_one_kept(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000, 0]))
    first = lab.run("text", "--retries", 0)
    assert first.status == 1
    assert "the 70,000 bytes received so far are kept" in first.error
    assert lab.files() == {"text/a.txt.part", "text/a.txt.part.json"}
    assert lab.run().status == 0
    assert site.ranges()[-1] == "bytes=70000-"
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_a_file_that_changed_meanwhile_is_not_mixed(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000, 0]))
    lab.run("text", "--retries", 0)
    site.put("a.txt", TEXT[::-1], etag='"2"')
    assert lab.run().status == 0
    assert (lab.output / "text/a.txt").read_bytes() == TEXT[::-1]


def test_a_part_that_the_server_no_longer_has_is_dropped(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, cuts=[70_000, 0], etag=""), HASH)
    lab.run("text", "--retries", 0)
    site.put("a.txt", TEXT[:500], etag="")  # shorter than the stored part; its hash is wrong, too
    ended = lab.run()
    assert ended.status == 1
    assert site.ranges()[-2:] == ["bytes=70000-", ""]
    assert lab.files() == set()


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


def test_a_cut_after_a_redirect_is_gone_on_from(lab, site):
    lab.row("a.txt", site.put("old", status=302, location=site.put("new", TEXT, cuts=[70_000])))
    assert lab.run().status == 0
    assert site.asked == [("/old", ""), ("/new", ""), ("/old", "bytes=70000-"), ("/new", "bytes=70000-")]
    assert (lab.output / "text/a.txt").read_bytes() == TEXT


def test_a_web_page_in_place_of_a_file_is_not_recorded(lab, site):
    lab.row("a.txt", site.put("a.txt", b"\n<!DOCTYPE html><title>Please log in</title>"))
    assert "web page" in lab.run().error
    assert lab.files() == set()
    assert record.Record(lab.output).get(Path("text/a.txt")) is None


def test_a_slow_server_is_given_up(lab, site):
    lab.row("a.txt", site.put("a.txt", TEXT, delay=0.5), HASH)
    ended = lab.run("text", "--timeout", 0.1, "--retries", 1)
    assert ended.status == 1
    assert "0.1 seconds (--timeout)" in ended.error
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


#: Answer of a hostile or broken first mirror, and a part of the error if there is no other mirror.
BAD_ANSWERS: dict[str, tuple[dict[str, object], str]] = {
    "a length of 45,000 digits": ({"headers": {"Content-Length": "9" * 45_000}}, "999..., which is not a number"),
    "a length of 4,000 digits": ({"headers": {"Content-Length": "9" * 4_000}}, "999..., which is not a number"),
    "a digit that is not ASCII": ({"headers": {"Content-Length": "1\xb2"}}, "the size 1\xb2, which is not a number"),
    "a negative length": ({"headers": {"Content-Length": "-1"}}, "the size -1, which is not a number"),
    "fewer bytes than announced": (
        {"chunked": True, "headers": {"Content-Length": str(len(TEXT) + 9)}},
        "the server sent 262,144 bytes, but announced 262,153",
    ),
    "more bytes than announced": (
        {"chunked": True, "headers": {"Content-Length": "9"}},
        "the server sent 262,144 bytes, but announced 9",
    ),
    "a terminal escape": ({"status": 404, "reason": "\x1b[2Jgone"}, "HTTP 404 ?[2Jgone"),
    **{
        f"a redirect to {location[:20]}": ({"status": 302, "location": location}, "cannot be used (")
        for location in (
            *("http://[::1", "http://host:port/a", "http://a:99999/a", "http://" + "a" * 70 + ".org/a"),
            *("http://..../a", "file:///etc/passwd", "http://\xff\xfe/a", "http://*.a..b/"),
        )
    },
}


@pytest.mark.parametrize(("page", "problem"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_a_bad_answer_is_one_line_and_the_next_mirror_is_tried(lab, site, page, problem):
    first = site.put("first", **{"content": TEXT, **page})
    lab.row("a.txt", first)
    alone = lab.run("text", "--retries", 0)
    assert alone.status == 1
    assert problem in alone.error.splitlines()[-1]
    lab.row("b.txt", f"{first} {site.put('second', TEXT)}")
    assert lab.run("text/b.txt", "--retries", 0).status == 0
    assert (lab.output / "text/b.txt").read_bytes() == TEXT


def test_a_redirect_loop_ends(lab, site):
    lab.row("a.txt", site.put("loop", status=302, location=f"{site.address}/loop"))
    assert "Exceeded 30 redirects" in lab.run("text").error
    assert len(site.asked) == 31


@pytest.mark.parametrize(
    "url", ["http://[::1/a.txt", "http://host:port/a.txt", "http:///a.txt", "http://host:99999/a.txt", "ftp://h/a.txt"]
)
def test_an_address_that_is_not_valid_is_named(lab, url):
    assert f"command line: the address {url!r}" in lab.run(url).error
    lab.row("a.txt", url)
    assert f"sources.tsv:2: the address {url!r}" in lab.run("text").error


@pytest.mark.parametrize("name", ["fetched.tsv", "Fetched.tsv", "fetched.tsv.gz", "fetched.tsv.partial", "a.txt.part"])
def test_the_records_cannot_be_overwritten(lab, site, name):
    lab.run(site.put("a.txt", TEXT))
    before = (lab.output / "fetched.tsv").read_bytes()
    assert f"a file named {name} would overwrite" in lab.run(site.put(name, b"file\n")).error
    assert (lab.output / "fetched.tsv").read_bytes() == before
    lab.row(name, site.put(name, b"file\n"))
    assert f"sources.tsv:2: a file named {name} would overwrite" in lab.run("text").error


def test_an_address_itself_can_be_fetched(lab, site):
    assert lab.run(site.put("some.txt", TEXT)).status == 0
    assert (lab.output / "some.txt").read_bytes() == TEXT


# --- content


@pytest.mark.parametrize("length", [True, False], ids=["length", "no-length"])
def test_a_wrong_size_is_refused(lab, site, length):
    lab.row("a.txt", site.put("a.txt", TEXT + b"!", length=length), "", len(TEXT))
    ended = lab.run()
    assert ended.status == 1
    assert f"the published {'size is ' if length else ''}{len(TEXT):,}" in ended.error
    assert lab.files() == set()


@pytest.mark.parametrize(("content", "status"), [(TEXT, 0), (TEXT[::-1], 1)])
def test_an_md5_is_checked_where_only_that_is_published(lab, site, content, status):
    published = hashlib.md5(TEXT).hexdigest()
    lab.row("a.txt", site.put("a.txt", content), f"md5:{published}")
    ended = lab.run()
    assert ended.status == status
    assert (f"instead of the published {published}" in ended.error) == bool(status)
    assert lab.files() == (set() if status else {"text/a.txt"})
    entry = record.Record(lab.output).get(Path("text/a.txt"))
    assert (entry and entry.sha256) == (None if status else HASH)


def test_wrong_content_is_refused_before_it_is_unpacked(lab, site):
    lab.row("a.txt.gz", site.put("a.txt.gz", gzip.compress(b"other")), HASH)
    ended = lab.run()
    assert ended.status == 1
    sha256 = hashlib.sha256(site.pages["/a.txt.gz"].content).hexdigest()
    assert all(word in ended.error for word in ("text/a.txt.gz", HASH, sha256))
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
    assert "Delete the file" in ended.error
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
    assert "text/a exists" in lab.run().error
    shutil.rmtree(lab.output / "text/a")
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
    assert f"no space is left on the disk. The whole file needs {len(TEXT):,} bytes, and " in ended.error
    assert f" bytes are free in {lab.output / 'text'}." in ended.error
    assert len(ended.error.splitlines()) == len(site.asked) == 1


def test_too_little_space_is_told_before_the_download(lab, site, monkeypatch):
    lab.row("a.txt", site.put("a.txt", TEXT))
    monkeypatch.setattr(transfer.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    assert "more bytes, but only 1,000 bytes are free" in lab.run().error
    assert lab.files() == set()
