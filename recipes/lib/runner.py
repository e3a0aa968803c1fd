"""Runs the stages that are not done: their output into logs, their progress to the screen."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from . import tied
from .logs import log_of, progress, tail
from .machine import executable, version_of
from .recipe import ROOT, Phase
from .screen import Screen
from .stages import InTheWay, Ledger, Stage

MANY = 8  # stages, named in a line


class Failed(Exception):
    """A stage failed; the message has its command and the end of its log."""


@dataclass
class Runner:
    output: Path
    ledger: Ledger
    screen: Screen
    lock: int  # the descriptor of the lock on the folder, which whoever watches over a command inherits
    slots: Sequence[Mapping[str, str]] = ({},)  # a job each: what its commands have in their environment
    tell: Callable[[Stage], str] = lambda stage: ""

    def __post_init__(self) -> None:
        self.free: SimpleQueue[Mapping[str, str]] = SimpleQueue()
        for slot in self.slots:
            self.free.put(slot)
        self.commit = version_of(ROOT)
        self.processes: dict[Stage, subprocess.Popen[Any]] = {}  # those that run
        self.stopping = threading.Event()
        self.total = self.done = 0

    def run(self, phases: list[Phase]) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends the commands, too
        stages = [stage for phase in phases for chain in phase for stage in chain]
        self.total, self.done = len(stages), sum(self.ledger.is_done(stage) for stage in stages)
        if self.done:
            self.screen.line(f"going on: {self.done} of {self.total} stages are done")
        if changed := self.ledger.changed(stages):
            self.screen.line(f"done anew, as their settings, files or code changed: {some(changed)}")
        for phase in phases:
            with ThreadPoolExecutor(len(self.slots)) as pool:
                futures = [pool.submit(self._run_chain, chain) for chain in phase]
                try:
                    self._watch(futures)
                finally:
                    self._stop(futures)

    def _watch(self, futures: list[Future[None]]) -> None:
        """Show the progress until all are through; a chain that fails leaves the others to their end."""
        waiting = set(futures)
        failures: list[Failed] = []
        while waiting:
            done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                try:
                    future.result()
                except Failed as failure:
                    failures.append(failure)
                    if waiting:
                        self.screen.line(f"{str(failure).splitlines()[0]}; the others go on")
            running = [progress(stage, log_of(stage, self.output)) for stage in list(self.processes)]
            if running:
                self.screen.status(" | ".join(running))
        if failures:
            raise Failed("\n\n".join(map(str, failures)))

    def _stop(self, futures: list[Future[None]]) -> None:
        if all(future.done() for future in futures):
            return
        self.stopping.set()
        for future in futures:
            future.cancel()
        for process in list(self.processes.values()):
            process.terminate()

    def _run_chain(self, chain: list[Stage]) -> None:
        for stage in chain:
            if self.stopping.is_set():
                return
            if not self.ledger.is_done(stage):
                self._run_stage(stage)

    def _run_stage(self, stage: Stage) -> None:
        log = log_of(stage, self.output)
        try:
            self._refuse_missing(stage.inputs, f"{stage.name} cannot start: no")
            for kept in self.ledger.start(stage, self.commit, log.stat().st_mtime if log.exists() else None):
                self.screen.line(f"{stage.name} begins anew: its settings changed; the earlier one is in {kept}")
            log.parent.mkdir(parents=True, exist_ok=True)
            goes_on = stage.resumes and len(self.ledger.read(stage, "begun").get("attempts", [])) > 1
            if stage.resumes and not goes_on and log.exists():
                os.replace(log, log.with_name(f"{log.name}.old"))  # of another training: its losses are not this one's
            with log.open("ab" if goes_on else "wb") as file:
                status = self._run_command(stage, file)
            if status != 0 and not self.stopping.is_set():
                raise Failed(explain(stage, f"failed with exit status {status}", log))
            if status == 0:
                self._refuse_missing(stage.outputs, f"{stage.name} ended as if all were well, but left no")
                self._finish(stage)
        except InTheWay as error:
            raise Failed(f"{stage.name} cannot start: {error}") from None
        except OSError as error:  # of this process: a marker or a log that cannot be written
            raise Failed(explain(stage, f"failed: {error}", log)) from error

    def _refuse_missing(self, paths: tuple[Path, ...], what: str) -> None:
        for path in paths:
            if not path.exists():
                raise Failed(f"{what} {path}")

    def _finish(self, stage: Stage) -> None:
        self.ledger.finish(stage, command=shlex.join(stage.command))
        self.done += 1
        seconds = self.ledger.read(stage)["seconds"]
        self.screen.line(f"{self.done}/{self.total} {stage.name} ({seconds:.0f}s){self.tell(stage)}")

    def _run_command(self, stage: Stage, log: BinaryIO) -> int:
        log.write(f"$ {shlex.join(stage.command)}\n".encode())
        log.flush()
        command = [executable(stage.command[0]), *stage.command[1:]]
        slot = self.free.get()
        try:
            return self._wait_for(stage, command, slot, log)
        finally:
            self.free.put(slot)

    def _wait_for(self, stage: Stage, command: list[str], slot: Mapping[str, str], log: BinaryIO) -> int:
        places = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "cwd": ROOT}
        with tied.start(command, env={**os.environ, **slot}, pass_fds=(self.lock,), **places) as process:
            self.processes[stage] = process
            if self.stopping.is_set():  # it was started while the others were being ended
                process.terminate()
            status = process.wait()
        del self.processes[stage]
        return status


def some(stages: Sequence[Stage]) -> str:
    """Their names, of many the first."""
    names = [stage.name for stage in stages[:MANY]]
    return ", ".join(names) + (f" and {len(stages) - MANY} more" if len(stages) > MANY else "")


def explain(stage: Stage, what: str, log: Path) -> str:
    end = tail(log)
    full = ["the disk is full: free some space"] if "No space left" in end + what else []
    lines = [f"{stage.name} {what}", end, *full, f"command: {shlex.join(stage.command)}"]
    return "\n".join([*lines, f"full log: {os.path.relpath(log)}"])
