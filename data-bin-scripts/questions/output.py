"""Write the files of a prepared folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corpora.errors import CorpusError
from shared import digest, whole_folder


@contextmanager
def new_folder(output: Path) -> Iterator[Path]:
    """Yield OUTPUT.partial, which becomes OUTPUT if the block ends without an error.

    Raises:
        CorpusError: OUTPUT exists.
    """
    if output.exists():
        raise CorpusError(f"{output} exists. Move it, or choose another --output.")
    with whole_folder(output) as folder:
        yield folder


def described(path: Path) -> dict[str, str]:
    """Return the name and the sha256 of an input file."""
    return {"name": path.name, "sha256": digest(path)}


def json_lines(rows: Iterable[Any]) -> str:
    """Return rows as lines of JSON."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_json(path: Path, facts: Any) -> None:
    """Write an object as indented JSON."""
    path.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
