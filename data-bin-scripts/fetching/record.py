"""`fetched.tsv`: what was fetched, with the hash that it is held to from then on; and one run at a time."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from shared import whole

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
PLAIN: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}


class Record:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "fetched.tsv"
        self.entries = {entry.file: entry for entry in self._read()}

    def get(self, file: Path) -> Entry | None:
        return self.entries.get(file.as_posix())

    def put(self, entry: Entry) -> None:
        self.entries[entry.file] = entry
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", **PLAIN)
        writer.writeheader()
        writer.writerows(asdict(self.entries[name]) for name in sorted(self.entries))
        with clear_when_full(self.path), whole(self.path) as partial:
            partial.write_text(text.getvalue(), encoding="utf-8")
            sync(partial)
        sync(self.path.parent)

    def _read(self) -> list[Entry]:
        if not self.path.exists():
            return []
        try:
            rows = csv.DictReader(self.path.read_text(encoding="utf-8").splitlines(), **PLAIN)
            entries = [Entry(**row) for row in rows]
            sane = rows.fieldnames == COLUMNS and all(entry.bytes.isdigit() for entry in entries)
        except (TypeError, ValueError, AttributeError):  # too many fields, no text, too few fields
            sane = False
        if not sane:
            raise FetchError(f"{self.path}: no record of this program, or damaged; move it away and run again")
        return entries


def sync(path: Path) -> None:
    """Wait until a file or the names in a folder are on the disk: after a power cut they are still there."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Let the second of two runs in a folder wait: both would write the same partial files."""
    with clear_when_full(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        held = lock.acquire(timeout=0)
    except Timeout:
        print(f"waiting: another run is at work in {folder}", flush=True)
        held = lock.acquire()
    with held:
        yield
