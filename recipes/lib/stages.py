"""Named stages, each one command, and the memory of which are done.

A stage is done when a marker with its key lies in the run's folder. The key is a hash of the command (or of what the
stage says decides its result), of the files that it names as inputs, and of the keys of the stages before it: a
changed setting re-does what depends on it and nothing else. The marker is renamed into place after the command has
succeeded, so whatever a killed run left behind is never taken for finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Stage:
    name: str
    command: tuple[str, ...]
    outputs: tuple[Path, ...]
    after: tuple[Stage, ...] = ()  # the stages whose outputs it reads
    inputs: tuple[Path, ...] = ()  # other files whose content decides the result
    resumes: bool = False  # the command goes on from what an interrupted run of itself left
    identity: tuple[str, ...] = ()  # what decides the result, where the command says more (on how many machines)

    @property
    def kind(self) -> str:
        """`train` of `train:shaw`."""
        return self.name.partition(":")[0]

    @property
    def variant(self) -> str:
        return self.name.partition(":")[2]

    def key(self) -> str:
        parts = [json.dumps(self.identity or self.command)]
        parts += [content(path) for path in self.inputs]
        parts += [stage.key() for stage in self.after]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def content(path: Path) -> str:
    """The hash of a file or folder. A missing one is not refused here: stages are listed before there are data."""
    if not path.exists():
        return "missing"
    if path.is_dir():
        return " ".join(f"{one.relative_to(path)} {content(one)}" for one in sorted(path.rglob("*")) if one.is_file())
    facts = path.stat()
    return _content(path, facts.st_size, facts.st_mtime_ns)


@cache  # keys are asked for many times, and a corpus may be large
def _content(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Ledger:
    """The markers of one run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def is_done(self, stage: Stage) -> bool:
        marker = self.read(stage)
        return marker.get("key") == stage.key() and all(path.exists() for path in stage.outputs)

    def read(self, stage: Stage) -> dict[str, Any]:
        path = self._path(stage, "done")
        try:
            facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # none, or emptied by a machine that went down: not done
            return {}
        return facts

    def start(self, stage: Stage) -> None:
        """Clear what is in the way, unless the stage can go on from it."""
        self._path(stage, "done").unlink(missing_ok=True)
        begun = self._path(stage, "begun")
        if not (stage.resumes and begun.exists() and begun.read_text(encoding="utf-8") == stage.key()):
            for path in stage.outputs:
                _remove(path)
        write_atomically(begun, stage.key())

    def finish(self, stage: Stage, **facts: object) -> None:
        write_atomically(self._path(stage, "done"), json.dumps({"key": stage.key(), **facts}, indent=1))
        self._path(stage, "begun").unlink(missing_ok=True)

    def forget(self, chosen: Iterable[Stage], stages: Iterable[Stage]) -> None:
        """Let the chosen ones, and whatever of `stages` (in order) reads what they write, be done anew."""
        open_again = set(chosen)
        for stage in stages:
            if stage in open_again or open_again.intersection(stage.after):
                open_again.add(stage)
                for state in ("done", "begun"):
                    self._path(stage, state).unlink(missing_ok=True)

    def _path(self, stage: Stage, state: str) -> Path:
        return self.folder / f"{stage.name.replace(':', '.')}.{state}"


def write_atomically(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)  # a full disk: leave it no fuller
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
