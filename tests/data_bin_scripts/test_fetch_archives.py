"""Test that the downloader unpacks archives into a folder, and writes nothing outside it."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable

import pytest
from fetching import unpack
from support_fetch import TEXT, tar, zipped

pytest_plugins = ["support_fetch"]  # the fixtures `site` and `lab`


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
    "tar-cut-at-its-checksum": ("a.tgz", tar(("one", TEXT))[:-8]),
    "tar-other-text": ("a.tgz", tar(("one", TEXT[::-1]))[:-8] + tar(("one", TEXT))[-8:]),
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
    assert f"{name}: the archive cannot be unpacked: " in ended.error
    assert len(ended.error.splitlines()) == 1
    assert lab.files() == {f"text/{name}"}  # nothing was unpacked here
    assert {path.name for path in tmp_path.iterdir()} == {"raw", "sources.tsv"}  # or elsewhere


@pytest.mark.parametrize(("name", "pack"), [("a.tgz", tar), ("a.zip", zipped)])
def test_an_absolute_name_is_refused(lab, site, tmp_path, name, pack: Callable[..., bytes]):
    lab.row(name, site.put(name, pack((str(tmp_path / "evil"), b"2"))))
    assert "is not a relative path" in lab.run().error
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
    (lab.output / "text/a.partial").mkdir(parents=True)
    (lab.output / "text/a.partial/half").write_text("x")
    assert lab.run().status == 0
    assert lab.files() == {"text/a.tgz", "text/a/one"}


def test_what_others_laid_there_is_not_overwritten(lab, site):
    lab.row("a.tgz", site.put("a.tgz", tar(("one", b"1"))))
    (lab.output / "text/a").mkdir(parents=True)
    assert "text/a exists" in lab.run().error


def test_a_name_without_an_archive_ending_is_left_alone():
    named = {name: unpack.target_of(name) for name in ("a.tar.xz", "a.tar.gz", "a.gz", "a.json", "a.xml.bz2", ".gz")}
    assert named == {"a.tar.xz": "a", "a.tar.gz": "a", "a.gz": "a", "a.json": None, "a.xml.bz2": None, ".gz": None}
