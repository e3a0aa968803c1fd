"""Keep the results of `gpu-check` in a JSON file, which is written after every task so that a run can be continued."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ...core.writing import write_whole
from ..drift_cases import name_of

Row = dict[str, Any]


class Task(NamedTuple):
    """Hold a piece of work that returns rows, each with `ok` (a bool) and, if `ok` is false, `text` (the reason)."""

    name: str
    run: Callable[[], list[Row]]


def _code() -> str:
    """Return a short hash of the code that is checked, and of the code of this command."""
    package = Path(__file__).parents[2]
    folders = [package / name for name in ("ops", "core", "encodings", "attention")] + [Path(__file__).parent]
    files = [package / "positions.py", package / "stack.py", *(file for one in folders for file in one.glob("*.*"))]
    code = (file.read_bytes() for file in sorted(files) if file.suffix in (".py", ".cpp", ".h"))
    return hashlib.sha256(b"\0".join(code)).hexdigest()[:12]


def described(error: Exception) -> str:
    """Return the type and the first line of an error."""
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"


class Results:
    """Hold the rows of gpu.json, unless they were measured on another device, with other software or with other sizes.

    Args:
        folder: Folder with gpu.json and gpu.md.
        device: The device that is checked.
        quick: Whether few encodings and small sizes are checked.
    """

    def __init__(self, folder: Path, device: torch.device, *, quick: bool) -> None:
        self.folder = folder
        self.setting = {
            "device": name_of(device),
            "torch": torch.__version__,
            "python": platform.python_version(),
            "quick": quick,
            "code": _code(),
        }
        self.rows = self._read()

    def _read(self) -> list[Row]:
        path = self.folder / "gpu.json"
        if not path.exists():
            return []
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["setting"] != self.setting:
            text = f"{path} is replaced, because its results were measured with other settings: {content['setting']}"
            print(f"gpu-check: {text}", file=sys.stderr)
            return []
        rows: list[Row] = content["rows"]
        return rows

    def has(self, part: str, name: str) -> bool:
        """Return whether a task is done and did not fail."""
        own = self.of(part, name)
        return bool(own) and all(row["ok"] for row in own)

    def of(self, part: str, name: str | None = None) -> list[Row]:
        """Return the rows of a part, or of one of its tasks."""
        return [row for row in self.rows if row["part"] == part and name in (None, row["task"])]

    @property
    def failures(self) -> list[Row]:
        """Return the rows that are not `ok`."""
        return [row for row in self.rows if not row["ok"]]

    def add(self, part: str, task: Task) -> None:
        """Run a task, replace its rows, and write the file. If the task raises an exception, its row is not `ok`."""
        try:
            rows = task.run()
        except Exception as error:  # noqa: BLE001 - the other tasks go on
            rows = [{"ok": False, "text": described(error)}]
        old = self.of(part, task.name)
        self.rows = [row for row in self.rows if row not in old]
        self.rows += [{"part": part, "task": task.name, **row} for row in rows]
        content = {"setting": self.setting, "rows": self.rows}
        write_whole(self.folder / "gpu.json", json.dumps(content, indent=1) + "\n")

    def write(self, page: str) -> None:
        """Write gpu.md."""
        write_whole(self.folder / "gpu.md", page)
