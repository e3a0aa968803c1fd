"""One file after the other: fetched, checked, published under its name, unpacked."""

from __future__ import annotations

import datetime
import gzip
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from .checks import check
from .download import download
from .errors import FetchError, MirrorError, clear_when_full
from .partial import Partial
from .record import Entry, Record, publish
from .sources import Source
from .transfer import Policy
from .unpack import target_of, unpack


@dataclass(frozen=True)
class Fetcher:
    output: Path
    record: Record
    own: Path | None  # a folder of the user's in place of the download
    unpacks: bool

    def get(self, source: Source, policy: Policy) -> int:
        """Have the file, and what is in it, in the output folder; its size."""
        path = self.output / source.path
        entry = self._done(source, path) or self._fetch(source, path, policy)
        if self.unpacks and target_of(source.name):
            self._unpack(entry, path)
        return int(entry.bytes)

    def _done(self, source: Source, path: Path) -> Entry | None:
        """What is there already, after a check of its content."""
        entry = self.record.get(source.path)
        if path.exists():
            return self._adopt(source, path, entry)
        if not (entry and entry.unpacked and self.unpacks and source.sha256 in ("", entry.sha256)):
            return None
        # An archive may be deleted once it is unpacked.
        return entry if (self.output / entry.unpacked).exists() else None

    def _adopt(self, source: Source, path: Path, entry: Entry | None) -> Entry:
        try:
            found = check(path, source, entry)
        except MirrorError as error:
            raise FetchError(f"{path}: {error}. Delete the file and run again to fetch it anew") from error
        if entry is None:  # laid there by hand: from now on it must stay the same
            entry = self._note(source, path, found, "found in place")
            print(f"{source.path}: found in place, sha256 {found}", flush=True)
        return entry

    def _fetch(self, source: Source, path: Path, policy: Policy) -> Entry:
        with clear_when_full(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        partial = Partial(path)
        found = ""
        print(f"{source.path}: fetching", flush=True)

        def checked(file: Path) -> None:
            nonlocal found
            try:
                found = check(file, source, self.record.get(source.path))
            except MirrorError:
                partial.remove()  # what is wrong is not gone on from
                raise

        if self.own:
            origin = _copy(self.own, source, partial)
            try:
                checked(partial.path)
            except MirrorError as error:
                raise FetchError(f"{origin}: {error}. Put the published file there") from error
        else:
            origin = download(source, partial, policy, checked)
        entry = self._note(source, partial.path, found, origin)
        publish(partial.path, path)
        partial.forget()
        print(f"{source.path}: {int(entry.bytes):,} bytes, sha256 {found} ({source.known})", flush=True)
        return entry

    def _note(self, source: Source, file: Path, found: str, origin: str) -> Entry:
        """Recorded before the file has its name, so that what has its name is always recorded."""
        known = self.record.get(source.path)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        unpacked = known.unpacked if known and known.sha256 == found else ""
        origin = " ".join(origin.replace("\t", " ").splitlines())  # one field, whatever a path may hold
        entry = Entry(source.path.as_posix(), found, str(file.stat().st_size), origin, today, unpacked)
        self.record.put(entry)
        return entry

    def _unpack(self, entry: Entry, path: Path) -> None:
        target = target_of(path.name)
        assert target is not None
        final = path.with_name(target)
        if final.exists():
            if not entry.unpacked:
                raise FetchError(f"{final} is in the way of unpacking {path.name}: move it away and run again")
            return
        partial = unpack(path, final)
        self.record.put(replace(entry, unpacked=final.relative_to(self.output).as_posix()))
        publish(partial, final)
        print(f"{entry.file}: unpacked to {final}", flush=True)


def find_own(folder: Path, source: Source) -> Path | None:
    """The user's copy: in the folder or its corpus's subfolder, plain or with `.gz`."""
    places = [folder / source.path, folder / source.name]
    return next((p for place in places for p in (place, place.with_name(place.name + ".gz")) if p.is_file()), None)


def _copy(folder: Path, source: Source, partial: Partial) -> str:
    own = find_own(folder, source)
    if own is None:
        raise FetchError(f"{folder}: neither {source.path} nor {source.name} is there (plain or .gz)")
    partial.forget()  # what is copied is no beginning of a download
    opener = gzip.open if own.name == source.name + ".gz" else open
    try:
        with clear_when_full(partial.path), opener(own, "rb") as file, partial.path.open("wb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
    except (OSError, EOFError) as error:
        partial.remove()
        raise FetchError(f"{own}: cannot be read ({error})") from error
    return str(own)
