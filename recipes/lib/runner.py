"""Runs the stages that are not done: their output into logs, their progress to the screen."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from .logs import log_of, progress, tail
from .machine import executable, version_of
from .recipe import ROOT, Phase, nothing_to_tell
from .screen import Screen
from .stages import Ledger, Stage


class Failed(Exception):
    """A stage failed; the message has its command and the end of its log."""


@dataclass
class Runner:
    output: Path
    ledger: Ledger
    screen: Screen
    jobs: int
    lock: int  # the descriptor of the lock, which the commands inherit
    tell: Callable[[Stage], str] = nothing_to_tell
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commit = version_of(ROOT)
        self.processes: dict[Stage, subprocess.Popen[bytes]] = {}  # those that run
        self.stopping = threading.Event()
        self.total = self.done = 0

    def run(self, phases: list[Phase]) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends the commands too
        stages = [stage for phase in phases for chain in phase for stage in chain]
        self.total, self.done = len(stages), sum(self.ledger.is_done(stage) for stage in stages)
        if self.done:
            self.screen.line(f"going on: {self.done} of {self.total} stages are done")
        for phase in phases:
            with ThreadPoolExecutor(self.jobs) as pool:
                futures = [pool.submit(self._run_chain, chain) for chain in phase]
                try:
                    self._watch(futures)
                finally:
                    self._stop(futures)

    def _watch(self, futures: list[Future[None]]) -> None:
        """Show the progress until all are through; raise what the first failure raised."""
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            running = [progress(stage, log_of(stage, self.output)) for stage in list(self.processes)]
            if running:
                self.screen.status(" | ".join(running))

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
        started, log = time.time(), log_of(stage, self.output)
        try:
            self._refuse_missing(stage.inputs, f"{stage.name} cannot start: no")
            self.ledger.start(stage)
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab" if stage.resumes else "wb") as file:
                status = self._run_command(stage, file)
            if status != 0 and not self.stopping.is_set():
                raise Failed(explain(stage, f"failed with exit status {status}", log))
            if status == 0:
                self._refuse_missing(stage.outputs, f"{stage.name} ended as if all were well, but left no")
                self._finish(stage, started)
        except OSError as error:  # of this process: a marker or a log that cannot be written
            raise Failed(explain(stage, f"failed: {error}", log)) from error

    def _refuse_missing(self, paths: tuple[Path, ...], what: str) -> None:
        for path in paths:
            if not path.exists():
                raise Failed(f"{what} {path}")

    def _finish(self, stage: Stage, started: float) -> None:
        facts = {"command": shlex.join(stage.command), "commit": self.commit}
        self.ledger.finish(stage, **facts, started=started, ended=time.time())
        self.done += 1
        seconds = time.time() - started
        self.screen.line(f"{self.done}/{self.total} {stage.name} ({seconds:.0f}s){self.tell(stage)}")

    def _run_command(self, stage: Stage, log: BinaryIO) -> int:
        log.write(f"$ {shlex.join(stage.command)}\n".encode())
        log.flush()
        command = [executable(stage.command[0]), *stage.command[1:]]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(self.lock,),
        ) as process:
            self.processes[stage] = process
            if self.stopping.is_set():  # it was started while the others were being ended
                process.terminate()
            status = process.wait()
        del self.processes[stage]
        return status


def explain(stage: Stage, what: str, log: Path) -> str:
    end = tail(log)
    full = ["the disk is full: free some space"] if "No space left" in end + what else []
    lines = [f"{stage.name} {what}", end, *full, f"command: {shlex.join(stage.command)}"]
    return "\n".join([*lines, f"full log: {os.path.relpath(log)}"])
