"""`fetched.tsv`: what was fetched, with the hash that it is held to from then on; and one run at a time."""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from .errors import FetchError, clear_when_full


@dataclass(frozen=True)
class Entry:
    file: str  # below the output folder
    sha256: str
    bytes: str
    source: str  # the address or the folder that it came from
    date: str
    unpacked: str = ""  # the file or folder that it was unpacked to, below the output folder


COLUMNS = [field.name for field in fields(Entry)]


class Record:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "fetched.tsv"
        self.entries = {entry.file: entry for entry in self._read()}

    def get(self, file: Path) -> Entry | None:
        return self.entries.get(file.as_posix())

    def put(self, entry: Entry) -> None:
        self.entries[entry.file] = entry
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(self.entries[name]) for name in sorted(self.entries))
        partial = self.path.with_name(self.path.name + ".partial")
        with clear_when_full(self.path):
            partial.write_text(text.getvalue(), encoding="utf-8")
            publish(partial, self.path)

    def _read(self) -> list[Entry]:
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            if rows.fieldnames != COLUMNS:
                raise FetchError(f"{self.path}: not a record of this program; move it away and run again")
            return [Entry(**row) for row in rows]


def publish(partial: Path, final: Path) -> None:
    """Give what is whole its final name; after a power cut it has either name, but all of its content."""
    _sync(partial)
    os.replace(partial, final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Two runs in one folder would write the same partial files: the second waits."""
    with clear_when_full(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting: another run is at work in {folder}", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
