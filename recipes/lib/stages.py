"""Define stages, each of which is one command, and record which of them are done.

A stage is done if the run's folder has a marker with the key of the stage. The key is a hash of the command (or of the
stage's `identity`), of its input files, and of the keys of the stages before it. If a setting changes, only the stages
that depend on it are repeated. The marker is renamed into place after the command has succeeded, so the output of a
killed run never counts as finished.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .package import write_whole


@dataclass(frozen=True)
class Stage:
    """Describe a named command of a recipe, with the files that it reads and writes."""

    name: str
    command: tuple[str, ...]
    outputs: tuple[Path, ...]
    after: tuple[Stage, ...] = ()  # the stages whose outputs it reads
    inputs: tuple[Path, ...] = ()  # other files whose content determines the result
    resumes: bool = False  # whether the command can continue an interrupted run of itself
    identity: tuple[str, ...] = ()  # words that determine the result, if not all words of the command do

    @property
    def kind(self) -> str:
        """Return the part of the name before the colon: `train` for `train:shaw`."""
        return self.name.partition(":")[0]

    @property
    def variant(self) -> str:
        """Return the part of the name after the colon: `shaw` for `train:shaw`."""
        return self.name.partition(":")[2]

    def key(self, folder: str = "") -> str:
        """Return a hash of everything that determines the stage's result.

        Args:
            folder: Path of the run's folder in commands. The hash ignores the folder's path, so the stages of a moved
                or copied run still count as done.
        """
        words = json.dumps(self.identity or self.command)
        parts = [words.replace(json.dumps(folder)[1:-1], "OUTPUT") if folder else words]
        parts += [content(path) for path in self.inputs]
        parts += [stage.key(folder) for stage in self.after]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def content(path: Path) -> str:
    """Return the hash of a file or folder. A missing path is allowed, because stages can be listed without data."""
    if not path.exists():
        return "missing"
    if path.is_dir():
        files = (file for file in sorted(path.rglob("*")) if file.is_file())
        return " ".join(f"{file.relative_to(path)} {content(file)}" for file in files)
    facts = path.stat()
    return _content(path, facts.st_size, facts.st_mtime_ns)


@cache  # a key is computed many times, and a corpus may be large
def _content(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


MARKERS = ".stages"  # name of the folder with the markers, in the output folder of a run
FORGOTTEN = "forgotten"  # key in the marker of a stage that --force repeats
SKIPPED = "skipped"  # key in the marker of a stage that was left out, because the training before it diverged


class ForeignOutput(Exception):
    """Report that an output of a stage already exists although no run of this recipe wrote it."""


class Ledger:
    """Manage the markers in a run's folder: NAME.done for finished stages, NAME.begun for running or killed stages."""

    def __init__(self, folder: Path, shown: str = "") -> None:
        self.folder = folder
        self.shown = shown  # the path of the run's folder in commands

    def key(self, stage: Stage) -> str:
        """Return the key of a stage in this folder: a hash of everything that determines the stage's result."""
        return stage.key(self.shown)

    def is_done(self, stage: Stage) -> bool:
        """Return whether a stage was skipped, or is done with the present settings and has all its outputs."""
        marker = self.read(stage)
        complete = marker.get(SKIPPED, False) or all(path.exists() for path in stage.outputs)
        return marker.get("key") == self.key(stage) and complete

    def changed(self, stages: Iterable[Stage]) -> list[Stage]:
        """Return the stages that were done or begun with other settings, files or code."""
        keys = ((stage, (self.read(stage) or self.read(stage, "begun")).get("key")) for stage in stages)
        return [stage for stage, key in keys if key and key != self.key(stage)]

    def read(self, stage: Stage, state: str = "done") -> dict[str, Any]:
        """Return the content of a stage's marker, which is empty if there is no marker."""
        return read_marker(self._path(stage, state))

    def start(self, stage: Stage, commit: str = "", seen: float | None = None) -> list[Path]:
        """Record that a stage starts. Outputs of earlier attempts are removed, unless the stage can continue them.

        Args:
            stage: Stage that is about to run.
            commit: Commit of the repository with which it runs.
            seen: Time at which an earlier, unfinished attempt last wrote to the log; this time counts as the end of
                that attempt.

        Returns: New paths of the outputs of an earlier training run. The old outputs are renamed instead of deleted,
        because training may have taken days.

        Raises:
            ForeignOutput: An output exists that no run wrote.
        """
        begun, key = self.read(stage, "begun"), self.key(stage)
        attempts: list[dict[str, Any]] = []
        renamed: list[Path] = []
        if stage.resumes and begun.get("key") == key:
            attempts = begun["attempts"]
            attempts[-1].setdefault("ended", max(seen or 0.0, attempts[-1]["started"]))
        else:
            renamed = self._make_room(stage)
        attempts.append({"started": time.time(), "commit": commit})
        write_whole(self._path(stage, "begun"), json.dumps({"key": key, "attempts": attempts}))
        self._path(stage, "done").unlink(missing_ok=True)
        return renamed

    def _make_room(self, stage: Stage) -> list[Path]:
        existing = [path for path in stage.outputs if path.exists()]
        if existing and not any(self._path(stage, state).exists() for state in ("done", "begun")):
            problem = "this output of the stage already exists, but no run in this folder wrote it"
            raise ForeignOutput(f"{existing[0]}: {problem}. Move this file or folder away, or choose another --output.")
        marker = self.read(stage) or self.read(stage, "begun")
        old = marker.get("key", "unknown")  # "unknown" if a crash emptied the marker
        if stage.resumes and FORGOTTEN not in marker and old != self.key(stage):
            return [_put_aside(path, f"old-{old[:8]}") for path in existing]
        for path in existing:
            _remove(path)
        return []

    def finish(self, stage: Stage, **facts: object) -> None:
        """Mark a stage as done. Record how long all attempts took, and which commits of the repository they used."""
        attempts = self.read(stage, "begun").get("attempts", [])
        ended = time.time()
        spent = sum(attempt.get("ended", ended) - attempt["started"] for attempt in attempts)
        commits = " then ".join(dict.fromkeys(attempt["commit"] for attempt in attempts))
        times = {"started": attempts[0]["started"] if attempts else ended, "ended": ended, "seconds": spent}
        marker = {"key": self.key(stage), **facts, "commit": commits, **times, "attempts": len(attempts)}
        write_whole(self._path(stage, "done"), json.dumps(marker, indent=1))
        self._path(stage, "begun").unlink(missing_ok=True)

    def skip(self, stage: Stage) -> None:
        """Mark a stage as skipped, which counts as done without outputs. Remove the outputs of an earlier run."""
        self._make_room(stage)
        self.finish(stage, **{SKIPPED: True})

    def forget(self, chosen: Iterable[Stage], stages: Iterable[Stage]) -> None:
        """Mark the chosen stages as not done, and also the later stages in `stages` that depend on a chosen stage."""
        reopened = set(chosen)
        for stage in stages:
            if stage in reopened or reopened.intersection(stage.after):
                reopened.add(stage)
                if any(self._path(stage, state).exists() for state in ("done", "begun")):
                    # This marker allows the next run to delete the outputs.
                    write_whole(self._path(stage, "begun"), json.dumps({FORGOTTEN: True}))
                self._path(stage, "done").unlink(missing_ok=True)

    def _path(self, stage: Stage, state: str) -> Path:
        return self.folder / f"{marker_name(stage.name)}.{state}"


def marker_name(stage: str) -> str:
    """Return the part of a marker's file name that names the stage."""
    return stage.replace(":", ".")


def read_marker(path: Path) -> dict[str, Any]:
    """Return the content of a marker, or an empty dictionary if the file is missing or damaged (by a crash, say)."""
    try:
        facts = read_json(path)
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _put_aside(path: Path, mark: str) -> Path:
    aside = path.with_name(f"{path.name}.{mark}")
    _remove(aside)
    path.rename(aside)
    return aside
