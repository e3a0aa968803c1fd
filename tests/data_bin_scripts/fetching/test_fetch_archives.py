"""Test that the downloader unpacks archives into a folder, and writes nothing outside it."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import signal
import tarfile
import zipfile
from collections.abc import Callable
from multiprocessing import get_context
from types import ModuleType
from typing import Any

import pytest
from fetching import bounds, record, unpack
from support_fetch import TEXT, tar, zipped
from support_scripts import hashes

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


#: Function and the number of its call in which a run is killed, and a file that is left.
KILLS = {
    "the record is half written": (record, "sync", 1, "fetched.tsv.partial"),
    "the archive is half unpacked": (unpack, "_write", 2, "text/a.partial/one"),
    "the archive is unpacked, but not recorded": (record, "sync", 3, "text/a.partial/two"),
}


@pytest.mark.parametrize(("module", "function", "call", "left"), KILLS.values(), ids=KILLS)
def test_a_killed_run_is_gone_on_from(lab, site, monkeypatch, module: ModuleType, function: str, call: int, left: str):
    lab.row("a.tgz", site.put("a.tgz", tar(("one", TEXT), ("two", TEXT[::-1]))))
    whole = lab.folder / "whole"
    assert lab.run(output=whole).status == 0
    original, calls = getattr(module, function), []

    def killed(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, function, killed)
        process = get_context("fork").Process(target=lab.run)
        process.start()
        process.join()
    assert process.exitcode == -signal.SIGKILL
    assert (lab.output / left).exists()
    assert not (lab.output / "text/a").exists()
    asked = len(site.asked)
    assert lab.run().status == 0
    assert len(site.asked) == asked  # not downloaded again
    assert hashes(lab.output) == hashes(whole)


def test_what_others_laid_there_is_not_overwritten(lab, site):
    lab.row("a.tgz", site.put("a.tgz", tar(("one", b"1"))))
    (lab.output / "text/a").mkdir(parents=True)
    assert "text/a exists" in lab.run().error


def test_a_name_without_an_archive_ending_is_left_alone():
    named = {name: unpack.target_of(name) for name in ("a.tar.xz", "a.tar.gz", "a.gz", "a.json", "a.xml.bz2", ".gz")}
    assert named == {"a.tar.xz": "a", "a.tar.gz": "a", "a.gz": "a", "a.json": None, "a.xml.bz2": None, ".gz": None}


# --- decompression bombs


ZEROS = bytes(10**6)  # 1,000 times as large as when it is compressed
FEW = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(150))  # 4,800 bytes that do not shrink


def tar_as(mode: str, *entries: tuple[str, bytes], **fields: object) -> bytes:
    """Return a tar archive, compressed by `mode`; `fields` are set in the headers of the entries."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{mode}") as archive:  # type: ignore[call-overload]
        for name, content in entries:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def zip_as(method: int, *entries: tuple[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return packed.getvalue()


LIMIT = "it unpacks to more than "
BOMBS = {
    "gz": ("a.gz", gzip.compress(ZEROS), LIMIT),
    **{
        f"tar-{mode}": (f"a.tar.{mode}", tar_as(mode, ("good", b"1"), ("a", ZEROS)), LIMIT)
        for mode in ("gz", "bz2", "xz")
    },
    "zip": ("a.zip", zip_as(zipfile.ZIP_DEFLATED, ("good", b"1"), ("a", ZEROS)), LIMIT),
    "zip-in-memory": ("a.zip", zip_as(zipfile.ZIP_BZIP2, ("a", b"1")), "not compressed by the method `deflate`"),
    "tar-links": ("a.tgz", tar(("a", FEW), links=tuple((f"{n}", "a", tarfile.LNKTYPE) for n in range(500))), LIMIT),
    "tar-empty-files": ("a.tgz", tar(*((f"{n}", b"") for n in range(1000))), LIMIT),
    "tar-hole": (
        "a.tgz",
        tar_as("gz", ("a", b""), pax_headers={"GNU.sparse.map": "0,0", "GNU.sparse.size": "1000000"}),
        LIMIT,
    ),
    "tar-left-out": ("a.tgz", tar(("__MACOSX/a", ZEROS), ("a", b"1")), LIMIT),
    "tar-left-out-and-cut": (  # bytes that are left out are not even uncompressed
        "a.tgz",
        gzip.compress(gzip.decompress(tar(("__MACOSX/a", ZEROS)))[:512]),
        LIMIT,
    ),
    "tar-end": ("a.tgz", tar(("a", b"1")) + gzip.compress(ZEROS), LIMIT),
    "tar-header": ("a.tgz", tar_as("gz", ("a", b"1"), pax_headers={"comment": "x" * 3_000_000}), "one of its headers"),
}


@pytest.mark.parametrize(("name", "content", "problem"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_and_leaves_nothing(lab, site, monkeypatch, name, content, problem):
    monkeypatch.setattr(bounds, "LARGEST_SMALL", 10_000)
    monkeypatch.setattr(bounds, "BLOCK", 1 << 21)
    monkeypatch.setattr(bounds, "LEAST", 512)
    lab.row(name, site.put(name, content))
    ended = lab.run()
    assert ended.status == 1
    assert f"text/{name}: the archive cannot be unpacked: " in ended.error
    assert problem in ended.error
    assert "Use --no-unpack" in ended.error
    assert len(ended.error.splitlines()) == 1
    assert lab.files() == {f"text/{name}"}
    assert {path.name for path in (lab.output / "text").iterdir()} == {name}


PACKED = {  # an archive, and the bytes that it is known to need when it is refused; a zip file knows all of them
    "a.gz": (gzip.compress(FEW), 4800),
    "a.tgz": (tar_as("gz", ("a", FEW)), 4096),
    "a.tar.xz": (tar_as("xz", ("a", FEW)), 4096),
    "a.zip": (zip_as(zipfile.ZIP_DEFLATED, ("a", FEW)), 4800),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize(("free", "status"), [(20_000, 0), (4_000, 1)], ids=["room", "no-room"])
def test_an_archive_that_would_fill_the_disk_is_refused(lab, site, monkeypatch, name, free, status):
    """The same archive is unpacked if there is room, although the limit for small archives is 0."""
    content, needed = PACKED[name]
    monkeypatch.setattr(bounds, "LARGEST_SMALL", 0)
    lab.row(name, site.put(name, content))
    lab.run("text", "--no-unpack")
    usage = type("Usage", (), {"free": bounds.RESERVE + free})
    monkeypatch.setattr(bounds.shutil, "disk_usage", lambda _: usage)
    ended = lab.run()
    assert ended.status == status
    if status:
        assert f"{name}: the unpacked files need at least {needed:,} bytes" in ended.error
        assert f"only {usage.free:,} bytes are free in {lab.output / 'text'}" in ended.error
    assert len(ended.error.splitlines()) == status
    unpacked = {"a.gz": "text/a"}.get(name, "text/a/a")
    assert lab.files() == {f"text/{name}"} | ({unpacked} if not status else set())


def test_a_bomb_of_ones_own_is_not_copied(lab, tmp_path, monkeypatch):
    monkeypatch.setattr(bounds, "LARGEST_SMALL", 10_000)
    lab.row("a.txt", "http://127.0.0.1/a.txt")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(ZEROS))
    ended = lab.run("text", "--from", tmp_path)
    assert ended.status == 1
    assert f"{tmp_path / 'a.txt.gz'}: the file cannot be read ({LIMIT}" in ended.error
    assert lab.files() == set()
