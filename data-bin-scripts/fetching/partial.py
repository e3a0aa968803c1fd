"""Manage the files of an unfinished download: `NAME.part` with its content, `NAME.part.json` with its origin."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Origin:
    """Hold the properties of a download that must not change if it is to be resumed."""

    url: str
    validator: str  # strong ETag, otherwise Last-Modified, otherwise empty
    total: int | None


class Partial:
    def __init__(self, final: Path) -> None:
        self.path = final.with_name(final.name + ".part")
        self.note = final.with_name(final.name + ".part.json")

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def origin(self) -> Origin | None:
        """Return the origin of the unfinished download, or None if there is nothing to resume."""
        if self.size() == 0:
            return None
        with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
            origin = Origin(**json.loads(self.note.read_text(encoding="utf-8")))
            if all(map(isinstance, (origin.url, origin.validator, origin.total), (str, str, int | None))):
                return origin
        return None

    def begin(self, origin: Origin) -> None:
        self.path.write_bytes(b"")
        self.note.write_text(json.dumps(asdict(origin)), encoding="utf-8")

    def check_folder(self) -> None:
        """Raise an error if somebody has removed the folder; the system still accepts bytes for a removed file."""
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"{self.path.parent}: the folder has disappeared during the download. Check that its disk is still "
                "connected, and run the command again."
            )

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self.forget()

    def forget(self) -> None:
        self.note.unlink(missing_ok=True)
