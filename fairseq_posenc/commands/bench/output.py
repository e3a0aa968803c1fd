"""What `--output` writes: the rows as JSON, the tables as Markdown, the figure."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.writing import write_whole
from . import figure, table
from .rows import Row


def write(folder: Path, rows: Sequence[Row], flat: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> None:
    """bench.json, bench.md and bench.png; without matplotlib, which is a requirement of the recipes, no figure."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "bench.json", json.dumps(flat, indent=1) + "\n")
    write_whole(folder / "bench.md", table.markdown(rows, facts))
    try:
        drawn = figure.draw(rows, folder / "bench.png")
    except ImportError:
        print("bench: no figure, as matplotlib is missing: pip install matplotlib", file=sys.stderr)
        return
    if not drawn:
        print("bench: no figure, as no layer was measured", file=sys.stderr)
