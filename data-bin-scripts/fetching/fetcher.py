"""Fetch files one by one: download or copy a file, check it, give it its final name, and unpack it."""

from __future__ import annotations

import datetime
import gzip
import os
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

from corpora.compressed import there
from shared import digest

from .bounds import Budget, RefusedError
from .download import download
from .errors import DiskFullError, FetchError, MirrorError, clear_when_full
from .partial import Partial
from .record import Entry, Record, sync
from .sources import Source
from .transfer import Policy
from .unpack import target_of, unpacked


@dataclass(frozen=True)
class Fetcher:
    output: Path
    record: Record
    own: Path | None  # the user's folder to copy from; None: download
    unpacks: bool

    def get(self, source: Source, policy: Policy) -> int:
        """Fetch and unpack a file into the output folder, and return its size."""
        path = self.output / source.path
        entry = self._done(source, path) or self._fetch(source, path, policy)
        if self.unpacks and target_of(source.name):
            self._unpack(entry, path)
        return int(entry.bytes)

    def _done(self, source: Source, path: Path) -> Entry | None:
        """Return the file's entry in fetched.tsv if the file exists (after a check) or was unpacked, otherwise None."""
        entry = self.record.get(source.path)
        if path.exists():
            return self._adopt(source, path, entry)
        if not (entry and entry.unpacked and self.unpacks and source.sha256 in ("", entry.sha256)):
            return None
        # An archive may be deleted once it is unpacked.
        return entry if (self.output / entry.unpacked).exists() else None

    def _adopt(self, source: Source, path: Path, entry: Entry | None) -> Entry:
        try:
            sha256 = check(path, source, entry)
        except MirrorError as error:
            raise FetchError(f"{path}: {error}. Delete the file and run the command again.") from error
        if entry is None:  # the user put the file here: from now on, its hash must not change
            entry = self._note(source, path, sha256, "found in place")
            print(f"{source.path}: the file exists already; its sha256 {sha256} was recorded", flush=True)
        return entry

    def _fetch(self, source: Source, path: Path, policy: Policy) -> Entry:
        with clear_when_full(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        partial = Partial(path)
        sha256 = ""
        print(f"{source.path}: fetching", flush=True)

        def checked(file: Path) -> None:
            nonlocal sha256
            try:
                sha256 = check(file, source, self.record.get(source.path))
            except MirrorError:
                partial.remove()  # a wrong file must not be resumed
                raise

        if self.own:
            origin = _copy(self.own, source, partial)
            try:
                checked(partial.path)
            except MirrorError as error:
                raise FetchError(f"{origin}: {error}. Replace this file by the published one.") from error
        else:
            origin = download(source, partial, policy, checked)
        entry = self._note(source, partial.path, sha256, origin)
        sync(partial.path)  # after a power cut, the file is complete under whichever name it has
        os.replace(partial.path, path)
        sync(path.parent)
        partial.forget()
        print(f"{source.path}: {int(entry.bytes):,} bytes, sha256 {sha256} ({source.known})", flush=True)
        return entry

    def _note(self, source: Source, file: Path, sha256: str, origin: str) -> Entry:
        """Add the file to fetched.tsv before it gets its final name, so that no finished file lacks a record."""
        known = self.record.get(source.path)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        unpacked = known.unpacked if known and known.sha256 == sha256 else ""
        origin = " ".join(origin.replace("\t", " ").splitlines())  # a path may contain tabs
        entry = Entry(source.path.as_posix(), sha256, str(file.stat().st_size), origin, today, unpacked)
        self.record.put(entry)
        return entry

    def _unpack(self, entry: Entry, path: Path) -> None:
        target = target_of(path.name)
        assert target is not None
        final = path.with_name(target)
        if final.exists():
            if not entry.unpacked:
                raise FetchError(
                    f"{path} was not unpacked: {final} exists. Move {final.name}, and run the command again."
                )
            return
        with unpacked(path, final):
            self.record.put(replace(entry, unpacked=final.relative_to(self.output).as_posix()))
        print(f"{entry.file}: unpacked to {final}", flush=True)


def find_own(folder: Path, source: Source) -> Path | None:
    """Return the user's copy of the file, plain or with `.gz`, from the folder or its subfolder for the corpus."""
    places = [folder / source.path, folder / source.name]
    return next((path for place in places if (path := there(place))), None)


def _copy(folder: Path, source: Source, partial: Partial) -> str:
    own = find_own(folder, source)
    if own is None:
        what = f"the folder holds neither {source.path} nor {source.name} (plain or .gz)"
        raise FetchError(f"--from {folder}: {what}. Put the published file into this folder.")
    partial.forget()  # a copied file must not be resumed as a download
    is_packed = own.name == source.name + ".gz"
    opener, size = (gzip.open, None) if is_packed else (open, own.stat().st_size)
    try:
        with clear_when_full(partial.path, size), opener(own, "rb") as file, partial.path.open("wb") as copy:
            Budget(own, partial.path.parent).copy(cast(IO[bytes], file), copy)
    except DiskFullError:
        partial.remove()
        raise
    except (OSError, EOFError, zlib.error, RefusedError) as error:
        partial.remove()
        raise FetchError(
            f"{own}: the file cannot be read ({error}). Replace this file by the published one."
        ) from error
    return str(own)


def _is_page(path: Path) -> bool:
    """Return whether the file begins like a web page; servers may send a login or error page in place of the file."""
    with path.open("rb") as file:
        return file.read(1000).lstrip().lower().startswith((b"<!doctype html", b"<html"))


def check(path: Path, source: Source, known: Entry | None) -> str:
    """Compare a file with the published hash, or if there is none, with the recorded hash; return its sha256.

    Raises:
        MirrorError: The size or the content is wrong, or the file is a web page.
    """
    size = path.stat().st_size
    if source.size not in (None, size):
        raise MirrorError(f"the size is wrong: the file has {size:,} bytes, but the published size is {source.size:,}")
    if not source.is_hash_published and not source.name.endswith((".html", ".htm")) and _is_page(path):
        raise MirrorError("the content is a web page, such as a login or error page, instead of the file")
    sha256 = digest(path)
    if source.sha256 and sha256 != source.sha256:
        raise MirrorError(f"the content is wrong: its sha256 is {sha256} instead of the published {source.sha256}")
    if source.md5 and (md5 := digest(path, "md5")) != source.md5:
        raise MirrorError(f"the content is wrong: its md5 is {md5} instead of the published {source.md5}")
    if not source.is_hash_published and known and sha256 != known.sha256:
        raise MirrorError(
            f"the content is wrong: its sha256 is {sha256}, but {known.sha256} was recorded on {known.date}. If "
            f"the publisher changed the file and you want the new one, delete the line of {known.file} in fetched.tsv"
        )
    return sha256
