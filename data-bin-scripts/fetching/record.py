"""Keep the record `fetched.tsv` with the hash of every fetched file, and let only one run work in a folder."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from shared import locked, whole

from .errors import FetchError, clear_when_full


@dataclass(frozen=True)
class Entry:
    file: str  # relative to the output folder
    sha256: str
    bytes: str
    source: str  # address or path that the file came from
    date: str
    unpacked: str = ""  # file or folder that it was unpacked to, relative to the output folder


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
        with clear_when_full(self.path, len(text.getvalue().encode())), whole(self.path) as partial:
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
        except (TypeError, ValueError, AttributeError):  # too many fields, not UTF-8, too few fields
            sane = False
        if not sane:
            raise FetchError(
                f"{self.path}: the file is damaged, or fetch.py did not write it. Move the file, and run the command "
                "again."
            )
        return entries


def sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk, so that it survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Make a second run in the same folder wait for the first, because both runs would write the same partial files."""
    with clear_when_full(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", 0, f"waiting for another run that writes to {folder}"):
        yield
