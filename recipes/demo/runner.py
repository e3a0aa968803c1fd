"""Runs the stages that are not done: their output into logs, their progress to the screen."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import BinaryIO

from .screen import Screen
from .stages import Ledger, Stage

Phase = list[list[Stage]]
TAIL_LINES = 20


class Failed(Exception):
    """A command failed; the message has the end of its log."""


class Runner:
    def __init__(self, root: Path, output: Path, ledger: Ledger, screen: Screen, jobs: int, lock: int) -> None:
        self.root, self.output, self.ledger, self.screen = root, output, ledger, screen
        self.jobs, self.lock = jobs, lock
        self.commit = version_of(root)
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
            running = [progress(stage, self._log(stage)) for stage in list(self.processes)]
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
        self.ledger.start(stage)
        started = time.time()
        log = self._log(stage)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab" if stage.resumes else "wb") as file:
            status = self._run_command(stage, file)
        if status != 0 and not self.stopping.is_set():
            where = f"full log: {os.path.relpath(log)}"
            raise Failed(f"{stage.name} failed with exit status {status}\n{tail(log)}\n{where}")
        if status == 0:
            self.ledger.finish(
                stage,
                command=shlex.join(stage.command),
                commit=self.commit,
                started=started,
                ended=time.time(),
            )
            self.done += 1
            seconds = time.time() - started
            self.screen.line(f"{self.done}/{self.total} {stage.name} ({seconds:.0f}s){result(stage)}")

    def _run_command(self, stage: Stage, log: BinaryIO) -> int:
        log.write(f"$ {shlex.join(stage.command)}\n".encode())
        log.flush()
        command = [executable(stage.command[0]), *stage.command[1:]]
        with subprocess.Popen(
            command, cwd=self.root, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(self.lock,)
        ) as process:
            self.processes[stage] = process
            if self.stopping.is_set():  # it was started while the others were being ended
                process.terminate()
            status = process.wait()
        del self.processes[stage]
        return status

    def _log(self, stage: Stage) -> Path:
        kind, _, encoding = stage.name.partition(":")
        return self.output / "logs" / (f"{encoding}.{kind}.log" if encoding else f"{kind}.log")


def executable(name: str) -> str:
    """A command of the environment that runs this, also where that is not first in PATH."""
    if name == "python":
        return sys.executable
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name) or name


def progress(stage: Stage, log: Path) -> str:
    """`train:shaw 320/900 loss 1.23`, from the last line of JSON that fairseq wrote."""
    if not stage.name.startswith("train:"):
        return stage.name
    this_attempt = tail(log, lines=60).rpartition("\n$ ")[2]
    lines = [line for line in this_attempt.splitlines() if "| train_inner | {" in line]
    if not lines:
        return f"{stage.name} starting"
    facts = json.loads(lines[-1].split("| train_inner | ")[1])
    flags = dict(zip(stage.command, stage.command[1:], strict=False))
    return f"{stage.name} {facts['num_updates']}/{flags.get('--max-update', '?')} loss {facts['loss']}"


def result(stage: Stage) -> str:
    if not stage.name.startswith("score:"):
        return ""
    return f" BLEU {json.loads(stage.outputs[0].read_text(encoding='utf-8'))['bleu']:.1f}"


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 400 * lines))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


def version_of(root: Path) -> str:
    """The commit, with `-dirty` where tracked files differ from it; `unknown` outside git."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
