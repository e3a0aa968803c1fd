"""Provide what the tests of GLUE share: the files of data_bin_scripts/glue/published, which have the published formats.

PYTEST_DONT_REWRITE: it is imported before it is named as a plugin.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import prepare_glue

PUBLISHED = Path(__file__).parent / "data_bin_scripts" / "glue" / "published"
Rows = list[tuple[str, ...]]
#: The rows of each handwritten file, by task and name.
FILES: dict[str, dict[str, Rows]] = {}
for _path in sorted(PUBLISHED.glob("*/*.tsv")):
    _lines = _path.read_text(encoding="utf-8").split("\n")[:-1]
    FILES.setdefault(_path.parent.name, {})[_path.name] = [tuple(line.split("\t")) for line in _lines]


def write(folder: Path, name: str, rows: Rows) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join("\t".join(row) + "\n" for row in rows).encode()
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return folder / name


def task_files(folder: Path, task: str, *, packed: bool = False, **changed: Rows) -> Path:
    """Write GLUE's files for a task; `train=ROWS` and so on replace the handwritten rows."""
    for name, rows in FILES[task].items():
        content = changed.get(name.removesuffix(".tsv"), rows)
        write(folder, f"{name}.gz" if packed else name, content)
    return folder


def prepare(task: str, data: Path, model: Path, output: Path, *more: str) -> int:
    """Run prepare_glue.py and return the exit status."""
    words = ["--task", task, "--corpus", data, "--checkpoint", model, "--output", output, "--length", "16", *more]
    return prepare_glue.main([str(word) for word in words])


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "glue.json").read_text("utf-8"))
