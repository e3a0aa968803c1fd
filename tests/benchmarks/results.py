"""Store measurements as flat rows, one JSON object a line, and format them as a table."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate

#: The facts that are printed below a table.
FACTS = ("device", "cores", "threads", "load", "torch", "python", "commit")


class Results:
    """Collect rows, and store each at once if there is a folder, so that a run that was stopped can go on.

    Args:
        folder: Folder for NAME.jsonl and NAME.md, or None.
        name: Name of the files, without extension.
        facts: Facts about the machine, which become part of every row.
        keys: Fields that tell rows apart.
    """

    def __init__(self, folder: Path | None, name: str, facts: Mapping[str, Any], keys: Sequence[str]) -> None:
        self.folder, self.name, self.facts, self.keys = folder, name, facts, keys
        self.rows: list[dict[str, Any]] = []
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            if self._file.exists():
                stored = map(json.loads, self._file.read_text(encoding="utf-8").splitlines())
                self.rows = list({tuple(row[key] for key in keys): row for row in stored}.values())

    @property
    def _file(self) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.name}.jsonl"

    def has(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row with the same keys and without an error was stored."""
        return any(all(old[key] == row[key] for key in self.keys) and not old.get("error") for old in self.rows)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row, or replace the one with the same keys, and store it."""
        self.rows = [old for old in self.rows if any(old[key] != row[key] for key in self.keys)]
        self.rows.append({**row, **self.facts})
        if self.folder is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self.rows[-1]) + "\n")

    def table(self, columns: Sequence[str]) -> str:
        """Return the rows as a Markdown table with the facts below, and write it to the folder."""
        cells = [[_text(row.get(column)) for column in columns] for row in self.rows]
        facts = "; ".join(f"{name} {self.facts[name]}" for name in FACTS)
        text = f"{tabulate(cells, columns, 'github', disable_numparse=True)}\n\nMeasured with {facts}.\n"
        if self.folder is not None:
            (self.folder / f"{self.name}.md").write_text(text, encoding="utf-8")
        return text


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def machine(device: torch.device) -> dict[str, Any]:
    """Return the facts about the machine and the software. Call this before the measurement: one is the load."""
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": _commit(),
    }


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str:
    """Return the commit of the code, with `-dirty` if tracked files differ from it; `unknown` outside of git."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
