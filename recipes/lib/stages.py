"""Named stages, each one command, and the memory of which are done.

A stage is done when a marker with its key lies in the run's folder. The key is a hash of the command (or of what the
stage says decides its result), of the files that it names as inputs, and of the keys of the stages before it: a
changed setting re-does what depends on it and nothing else. The marker is renamed into place after the command has
succeeded, so whatever a killed run left behind is never taken for finished.
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

    def key(self, folder: str = "") -> str:
        """`folder` is what the commands call the run's folder: moved or copied, a run is the same run."""
        words = json.dumps(self.identity or self.command)
        parts = [words.replace(json.dumps(folder)[1:-1], "OUTPUT") if folder else words]
        parts += [content(path) for path in self.inputs]
        parts += [stage.key(folder) for stage in self.after]
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


MARKERS = ".stages"  # the folder of a run's markers, in its output folder
FORGOTTEN = "forgotten"  # in the marker of what --force does anew


class InTheWay(Exception):
    """Something that no run of this recipe made stands where a stage wants to write."""


class Ledger:
    """The markers of one run's folder: NAME.done of a finished stage, NAME.begun of one at work or killed."""

    def __init__(self, folder: Path, shown: str = "") -> None:
        self.folder = folder
        self.shown = shown  # what commands call the run's folder

    def key(self, stage: Stage) -> str:
        return stage.key(self.shown)

    def is_done(self, stage: Stage) -> bool:
        return self.read(stage).get("key") == self.key(stage) and all(path.exists() for path in stage.outputs)

    def changed(self, stages: Iterable[Stage]) -> list[Stage]:
        """Those that were done or begun, of other settings, files or code than now."""
        keys = ((stage, (self.read(stage) or self.read(stage, "begun")).get("key")) for stage in stages)
        return [stage for stage, key in keys if key and key != self.key(stage)]

    def read(self, stage: Stage, state: str = "done") -> dict[str, Any]:
        return read_marker(self._path(stage, state))

    def start(self, stage: Stage, commit: str = "", seen: float | None = None) -> list[Path]:
        """Make room for the stage, unless it can go on from what is there.

        Args:
            seen: when an earlier attempt last gave a sign of life.

        Returns:
            where an earlier training went: days of work are put aside, not deleted.

        Raises:
            InTheWay: an output is there that no run made.
        """
        begun, key = self.read(stage, "begun"), self.key(stage)
        attempts: list[dict[str, Any]] = []
        kept: list[Path] = []
        if stage.resumes and begun.get("key") == key:
            attempts = begun["attempts"]
            attempts[-1].setdefault("ended", max(seen or 0.0, attempts[-1]["started"]))
        else:
            kept = self._make_room(stage)
        attempts.append({"started": time.time(), "commit": commit})
        write_whole(self._path(stage, "begun"), json.dumps({"key": key, "attempts": attempts}))
        self._path(stage, "done").unlink(missing_ok=True)
        return kept

    def _make_room(self, stage: Stage) -> list[Path]:
        there = [path for path in stage.outputs if path.exists()]
        if there and not any(self._path(stage, state).exists() for state in ("done", "begun")):
            raise InTheWay(
                f"{there[0]} is in the way: no run in this folder made it; move it, or choose another --output"
            )
        known = self.read(stage) or self.read(stage, "begun")
        old = known.get("key", "unknown")  # of a marker that a crash emptied
        if stage.resumes and FORGOTTEN not in known and old != self.key(stage):
            return [_put_aside(path, f"old-{old[:8]}") for path in there]
        for path in there:
            _remove(path)
        return []

    def finish(self, stage: Stage, **facts: object) -> None:
        """Mark it done, with how long all attempts took and the commits that they used."""
        attempts = self.read(stage, "begun").get("attempts", [])
        ended = time.time()
        spent = sum(one.get("ended", ended) - one["started"] for one in attempts)
        commits = " then ".join(dict.fromkeys(one["commit"] for one in attempts))
        times = {"started": attempts[0]["started"] if attempts else ended, "ended": ended, "seconds": spent}
        known = {"key": self.key(stage), **facts, "commit": commits, **times, "attempts": len(attempts)}
        write_whole(self._path(stage, "done"), json.dumps(known, indent=1))
        self._path(stage, "begun").unlink(missing_ok=True)

    def forget(self, chosen: Iterable[Stage], stages: Iterable[Stage]) -> None:
        """Let the chosen ones, and whatever of `stages` (in order) reads what they write, be done anew."""
        open_again = set(chosen)
        for stage in stages:
            if stage in open_again or open_again.intersection(stage.after):
                open_again.add(stage)
                if any(self._path(stage, state).exists() for state in ("done", "begun")):
                    write_whole(self._path(stage, "begun"), json.dumps({FORGOTTEN: True}))  # it may be cleared
                self._path(stage, "done").unlink(missing_ok=True)

    def _path(self, stage: Stage, state: str) -> Path:
        return self.folder / f"{marker_name(stage.name)}.{state}"


def marker_name(stage: str) -> str:
    return stage.replace(":", ".")


def read_marker(path: Path) -> dict[str, Any]:
    """Return what a marker says; nothing where there is none, or where a machine that went down emptied it."""
    try:
        facts: dict[str, Any] = read_json(path)
    except (FileNotFoundError, ValueError):
        return {}
    return facts


def read_json(path: Path) -> Any:
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
