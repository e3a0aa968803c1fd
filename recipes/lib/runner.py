"""Run the stages that are not done. A stage's output is written to a log, and its progress is shown on the screen."""

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
from .package import Divergence, read_divergence
from .recipe import ROOT, Phase
from .remaining import Remaining
from .screen import Screen
from .stages import ForeignOutput, Ledger, Stage

LONGEST_LIST = 8  # number of stages to name in a line
LONG_LINE = 400  # characters to show of a line before the last; fairseq logs its configuration in a line of 10,000
ENDED = 128 + signal.SIGTERM  # exit status of a shell after SIGTERM


class Failed(Exception):
    """Report that a stage failed; the message contains the stage's command and the end of its log."""


@dataclass
class Runner:
    """Run stages, at most `len(slots)` of them at the same time."""

    output: Path
    ledger: Ledger
    screen: Screen
    lock: int  # file descriptor of the folder's lock, which the processes of tied.py inherit
    slots: Sequence[Mapping[str, str]] = ({},)  # environment variables of each job
    tell: Callable[[Stage], str] = lambda stage: ""

    def __post_init__(self) -> None:
        self.free: SimpleQueue[Mapping[str, str]] = SimpleQueue()
        for slot in self.slots:
            self.free.put(slot)
        self.commit = version_of(ROOT)
        self.processes: dict[Stage, subprocess.Popen[Any]] = {}  # processes of the stages that are running
        self.stopping = threading.Event()
        self.total = self.done = 0
        self.remaining = Remaining((), self.ledger, self.output, len(self.slots))

    def run(self, phases: list[Phase]) -> None:
        """Run the phases one after another.

        Raises:
            Failed: A stage failed. All other chains of the phase end before the exception is raised.
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED))  # so that `finally` also ends the commands
        stages = [stage for phase in phases for chain in phase for stage in chain]
        self.remaining = Remaining(phases, self.ledger, self.output, len(self.slots))
        self.total, self.done = len(stages), sum(self.ledger.is_done(stage) for stage in stages)
        if self.done:
            self.screen.line(f"continuing: {self.done} of {self.total} stages are already done")
        if changed := self.ledger.changed(stages):
            self.screen.line(f"repeating stages whose settings, files or code changed: {listed(changed)}")
        for phase in phases:
            with ThreadPoolExecutor(len(self.slots)) as pool:
                futures = [pool.submit(self._run_chain, chain) for chain in phase]
                try:
                    self._watch(futures)
                finally:
                    self._stop(futures)

    def _watch(self, futures: list[Future[None]]) -> None:
        """Show the progress until all chains have ended. If a chain fails, the other chains continue."""
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
                        self.screen.line(f"{str(failure).splitlines()[0]}; the other stages continue")
            running = [progress(stage, log_of(stage, self.output)) for stage in list(self.processes)]
            if running:
                self.screen.status(self.remaining.text(list(self.processes)) + " | ".join(running))
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
        diverged = False
        for stage in chain:
            if self.stopping.is_set():
                return
            if not self.ledger.is_done(stage):
                if diverged:
                    self._skip(stage)
                else:
                    self._run_stage(stage)
            diverged |= self._divergence(stage) is not None

    def _skip(self, stage: Stage) -> None:
        try:
            self.ledger.skip(stage)
        except ForeignOutput as error:
            raise Failed(f"{stage.name} cannot be skipped: {error}") from None
        self.done += 1
        self.screen.line(f"{self.done}/{self.total} {stage.name} is skipped, because the training diverged")

    def _divergence(self, stage: Stage) -> Divergence | None:
        """Return how a training stage diverged, or None for a training that did not diverge and for other stages."""
        return read_divergence(log_of(stage, self.output)) if stage.kind == "train" else None

    def _run_stage(self, stage: Stage) -> None:
        log = log_of(stage, self.output)
        try:
            self._refuse_missing(stage.inputs, f"{stage.name} cannot start: this input is missing:")
            for old in self.ledger.start(stage, self.commit, log.stat().st_mtime if log.exists() else None):
                self.screen.line(f"{stage.name} starts again, because its settings changed. Earlier output: {old}")
            log.parent.mkdir(parents=True, exist_ok=True)
            continues = stage.resumes and len(self.ledger.read(stage, "begun").get("attempts", [])) > 1
            if stage.resumes and not continues and log.exists():
                os.replace(log, log.with_name(f"{log.name}.old"))  # its losses belong to another training
            with log.open("ab" if continues else "wb") as file:
                status = self._run_command(stage, file)
            divergence = self._divergence(stage)
            if status != 0 and not self.stopping.is_set():
                if divergence is None or divergence.finite:
                    raise Failed(explain(stage, f"failed with exit status {status}", log))
                stage.outputs[0].mkdir(parents=True, exist_ok=True)  # it may have diverged before the first checkpoint
                status = 0
            if status == 0:
                self._refuse_missing(stage.outputs, f"{stage.name} ended with exit status 0, but did not write")
                self._finish(stage)
        except ForeignOutput as error:
            raise Failed(f"{stage.name} cannot start: {error}") from None
        except OSError as error:  # this process cannot write a marker or a log
            raise Failed(explain(stage, f"failed: {error}", log)) from error

    def _refuse_missing(self, paths: tuple[Path, ...], problem: str) -> None:
        for path in paths:
            if not path.exists():
                raise Failed(f"{problem} {path}")

    def _finish(self, stage: Stage) -> None:
        self.ledger.finish(stage, command=shlex.join(stage.command))
        self.done += 1
        marker = self.ledger.read(stage)
        seconds = f"{marker['seconds']:.0f}s" + (" in all" if marker["attempts"] > 1 else "")
        divergence = self._divergence(stage)
        result = f" diverged: {divergence}" if divergence else self.tell(stage)
        self.screen.line(f"{self.done}/{self.total} {stage.name} ({seconds}){result}")

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
        env = {**os.environ, "SLURM_JOB_NAME": stage.name, **slot}  # squeue shows this name of a job that srun starts
        with tied.start(command, env=env, pass_fds=(self.lock,), **places) as process:
            self.processes[stage] = process
            if self.stopping.is_set():  # the process was started while all others were stopped
                process.terminate()
            status = process.wait()
        del self.processes[stage]
        return status


def listed(stages: Sequence[Stage]) -> str:
    """Return a text with the names of the first stages and the number of the remaining stages."""
    names = [stage.name for stage in stages[:LONGEST_LIST]]
    return ", ".join(names) + (f" and {len(stages) - LONGEST_LIST} more" if len(stages) > LONGEST_LIST else "")


def explain(stage: Stage, problem: str, log: Path) -> str:
    """Return the message about a failed stage. The message ends with the end of the log, because the log's last line
    says what is wrong.
    """
    command = shlex.join(stage.command)
    end = [line for line in tail(log).splitlines() if line.strip() and line != f"$ {command}"]
    full = ["The disk is full. Free some space, then run the same command again."]
    full = full if "No space left" in "".join(end) + problem else []
    end[:-1] = [line if len(line) <= LONG_LINE else f"{line[:LONG_LINE]} [...]" for line in end[:-1]]
    lines = [f"{stage.name} {problem}", f"command: {command}"]
    return "\n".join([*lines, f"full log: {os.path.relpath(log)}, which ends with:", *end, *full])
