"""DIR.partial: work in progress, from which a run goes on; it becomes DIR when all is there."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import CorpusError
from .job import read_json, write

_IDENTITY, RECORD = "identity.json", "corpus.json"


def there(output: Path, options: dict[str, Any]) -> bool:
    """Whether the output is done already.

    Raises:
        CorpusError: something else is there.
    """
    if not output.exists():
        return False
    try:
        if read_json(output / RECORD)["identity"] == options:
            return True
    except (OSError, ValueError, KeyError, TypeError):
        raise CorpusError(
            f"{output} is in the way: no corpus of this program; move it or choose another --output"
        ) from None
    raise CorpusError(f"{output} is in the way: a corpus of other text or options; move it or choose another --output")


@contextmanager
def partial(output: Path, identity: dict[str, Any]) -> Iterator[Path]:
    """DIR.partial: what a run of the same identity left, or new.

    Raises:
        CorpusError: another run is at work there, or it is no folder of this program's.
    """
    folder = output.with_name(output.name + ".partial")
    if folder.exists() and not (folder / _IDENTITY).is_file() and any(one.name != "lock" for one in folder.iterdir()):
        raise CorpusError(f"{folder} is in the way: no run of this program left it; move it")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CorpusError(
                f"{folder}: another run is at work there; wait for it, or choose another --output"
            ) from None
        _same(folder, identity)
        yield folder


def _same(folder: Path, identity: dict[str, Any]) -> None:
    known = folder / _IDENTITY
    if known.is_file():
        old = _read(known)
        if old == identity:
            print(f"{folder}: goes on from what an earlier run left", flush=True)
            return
        print(f"{folder}: left by a run with {difference(old, identity)}: begun anew", flush=True)
        for path in folder.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    write(known, json.dumps(identity))


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = read_json(path)
    except ValueError:
        return {}
    return found


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first one, in words."""
    options, others = new.get("options", {}), old.get("options", {})
    for name, value in options.items():
        if others.get(name) != value:
            return f"--{name.replace('_', '-')} {others.get(name)} (now {value})"
    names = {"tokenizer": "another tokenizer", "files": "other files", "versions": "other versions of its libraries"}
    return next((word for name, word in names.items() if old.get(name) != new.get(name)), "other options")


def finish(folder: Path, result: Path, output: Path) -> None:
    """The result takes the name of the output."""
    for left in result.rglob(".*"):
        left.unlink()  # unfinished, by a run that was killed
    os.replace(result, output)
    shutil.rmtree(folder)
