"""Manage DIR.partial, the unfinished output of a run; a later run can resume it, and it becomes DIR in the end."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared import locked, named_when_full, write_whole

from .errors import CorpusError
from .job import read_json

logging.getLogger("filelock").setLevel(logging.INFO)  # otherwise it logs every lock when all messages are logged
_IDENTITY, RECORD = "identity.json", "corpus.json"
_BEGUN = {"lock", f"{_IDENTITY}.partial"}  # files of a run that was killed before it wrote its identity


def there(output: Path, options: dict[str, Any]) -> bool:
    """Return whether the output is already complete.

    Raises:
        CorpusError: The path exists and is not the output of this run.
    """
    if not output.exists():
        return False
    try:
        if read_json(output / RECORD)["identity"] == options:
            return True
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise CorpusError(
            f"{output} exists, and this program did not write it. Move it, or choose another --output."
        ) from None
    raise CorpusError(f"{output} exists, but was made from other text or options. Move it, or choose another --output.")


@contextmanager
def partial(output: Path, identity: dict[str, Any]) -> Iterator[Path]:
    """Yield the folder DIR.partial, with the files of an interrupted run if that run had the same input and options.

    Raises:
        CorpusError: Another run is writing the folder, or this program did not write it.
    """
    folder = output.with_name(output.name + ".partial")
    if (
        folder.exists()
        and not (folder / _IDENTITY).is_file()
        and any(path.name not in _BEGUN for path in folder.iterdir())
    ):
        raise CorpusError(f"{folder} exists, and this program did not write it. Move it.")
    folder.mkdir(parents=True, exist_ok=True)
    busy = f"{folder} is in use by another run. Wait until the other run ends, or choose another --output."
    with locked(folder / "lock", 0, CorpusError(busy)), named_when_full(folder):
        _same(folder, identity)
        yield folder


def _same(folder: Path, identity: dict[str, Any]) -> None:
    known = folder / _IDENTITY
    if known.is_file():
        old = _read(known)
        if old == identity:
            print(f"{folder}: continuing the interrupted run", flush=True)
            return
        print(f"{folder}: removed the partial output of an earlier run with {difference(old, identity)}", flush=True)
        for path in folder.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_whole(known, json.dumps(identity))


def _read(path: Path) -> dict[str, Any]:
    try:
        identity = read_json(path)
    except (ValueError, RecursionError):
        return {}
    return identity if isinstance(identity, dict) else {}


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe the first option or input in which the new run differs from the old one."""
    options, others = new.get("options", {}), old.get("options", {})
    for name, value in options.items():
        if others.get(name) != value:
            return f"--{name.replace('_', '-')} {others.get(name)} (now {value})"
    names = {"tokenizer": "another tokenizer", "files": "other files", "versions": "other versions of its libraries"}
    return next((word for name, word in names.items() if old.get(name) != new.get(name)), "other options")


def make(output: Path, identity: dict[str, Any], work: Callable[[Path], Path]) -> bool:
    """Write the output, unless it is already complete.

    Args:
        work: Function that fills DIR.partial and returns the subfolder that becomes the output.
    Returns:
        True if the output was written, False if it was already complete.
    Raises:
        CorpusError: The path exists and holds other output, another run is writing it, or `work` failed.
    """
    if there(output, identity):
        print(f"{output} is already complete", flush=True)
        return False
    with partial(output, identity) as folder:
        os.replace(work(folder), output)
        shutil.rmtree(folder)
    return True
